package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// encodedForms returns the forms in which a value may occur.
func encodedForms(v string) []string {
	forms := []string{v, hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v)))}
	forms = append(forms, escapedForms(v)...)
	return append(forms, base64Forms(v)...)
}

var percent = lazyregexp.New(`%[0-9A-F]{2}`)

// escapedForms returns the forms in URLs and in quoted texts.
func escapedForms(v string) []string {
	forms := []string{url.QueryEscape(v), url.PathEscape(v)}
	for _, f := range forms {
		forms = append(forms, percent.ReplaceAllStringFunc(f, strings.ToLower))
	}
	for _, f := range append([]string{v}, forms...) {
		for _, once := range jsonForms(f) {
			forms = append(forms, once, strings.ReplaceAll(once, "/", `\/`))
			forms = append(forms, jsonForms(once)...) // JSON in JSON, as in arguments of tools
		}
	}
	return append(forms, stripQuotes(strconv.Quote(v)), stripQuotes(strconv.QuoteToASCII(v)))
}

// jsonForms returns a value within a JSON text, as encoders with and without HTML escaping
// write it.
func jsonForms(v string) (forms []string) {
	for _, html := range []bool{true, false} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(v) == nil {
			forms = append(forms, stripQuotes(strings.TrimSuffix(b.String(), "\n")))
		}
	}
	return forms
}

func stripQuotes(quoted string) string { return quoted[1 : len(quoted)-1] }

// base64Forms returns the encodings of a value on its own, and the stable part of its encodings
// within a longer text (user:value in a header), where it may begin at any of three
// offsets.
func base64Forms(v string) []string {
	var forms []string
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, e.EncodeToString([]byte(v)))
		for before, skip := range []int{0, 2, 3} {
			whole := e.WithPadding(base64.NoPadding).EncodeToString(append(make([]byte, before), v...))
			// The last character contains bits of the byte after the value, unless the text ends
			// there.
			forms = append(forms, whole[skip:(before+len(v))*8/6])
		}
	}
	return forms
}

// PartialValueLen returns how many bytes at the end of a text may be the beginning of an exact value,
// which the next bytes may complete.
func (m *Masker) PartialValueLen(text string) int {
	for n := min(len(text), m.longest); n > 0; n-- {
		end := text[len(text)-n:]
		for _, v := range m.values {
			if len(v) > n && strings.HasPrefix(v, end) {
				return n
			}
		}
	}
	return 0
}
