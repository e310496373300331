package cassette

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// secretName matches the names of headers and parameters whose values are
// secret.
var secretName = lazyregexp.New(`(?i)auth|key|token|secret|cookie|passw|credential|session|signature|^sig$|^code$`)

// countsTokens matches headers that are about the other kind of tokens.
var countsTokens = lazyregexp.New(`(?i)ratelimit|max-?tokens|tokens-`)

func isSecretName(name string) bool {
	return secretName.MatchString(name) && !countsTokens.MatchString(name)
}

// secretCleaner removes secrets; its value function may be nil.
type secretCleaner func(string) string

func (c secretCleaner) cleanText(s string) string {
	if c == nil {
		return s
	}
	return c(s)
}

func (c secretCleaner) cleanHeader(h http.Header) http.Header {
	clean := http.Header{}
	for name, values := range h {
		for _, v := range values {
			if v = addressed.ReplaceAllStringFunc(c.cleanText(v), c.cleanAddress); isSecretName(name) {
				v = Masked
			}
			clean[name] = append(clean[name], v)
		}
	}
	return clean
}

// addressed is an address within a header, such as where a redirect leads.
var addressed = lazyregexp.New(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"<>]+|^/[^\s]*\?[^\s]*$`)

func (c secretCleaner) cleanAddress(v string) string {
	u, err := url.Parse(v)
	if err != nil {
		return Masked
	}
	return c.cleanURL(u)
}

// cleanURL is the text of a URL without user info and fragment, and without the
// values of parameters that look like keys.
func (c secretCleaner) cleanURL(u *url.URL) string {
	clean := *u
	clean.User, clean.Fragment, clean.RawFragment = nil, "", ""
	query := clean.Query()
	for name, values := range query {
		for i, v := range values {
			if values[i] = c.cleanText(v); isSecretName(name) {
				values[i] = Masked
			}
		}
	}
	clean.RawQuery = strings.ReplaceAll(query.Encode(), url.QueryEscape(Masked), Masked)
	return c.cleanText(clean.String())
}

// Address is an address as a label may have it: without user info, and without
// parameters. What is no address is masked.
func Address(v string) string {
	if v == "" {
		return ""
	}
	at := strings.LastIndexByte(v, '@')
	scheme, _, ok := strings.Cut(v, "://")
	if at >= 0 && ok {
		v = scheme + "://" + v[at+1:]
	} else if at >= 0 {
		v = v[at+1:]
	}
	v, _, _ = strings.Cut(v, "?")
	v, _, _ = strings.Cut(v, "#")
	return v
}

// cleanChunks cleans a stream. Where a value reaches from one chunk into the next,
// the stream becomes one chunk.
func (c secretCleaner) cleanChunks(list []chunk) []chunk {
	var whole, parts strings.Builder
	clean := make([]chunk, len(list))
	for i, x := range list {
		whole.Write(x.chunkBytes())
		y := newChunk(0, []byte(c.cleanText(string(x.chunkBytes()))))
		y.AtMS, clean[i] = x.AtMS, y
		parts.Write(y.chunkBytes())
	}
	want := c.cleanText(whole.String())
	if want == parts.String() {
		return clean
	}
	one := newChunk(0, []byte(want))
	one.AtMS = list[len(list)-1].AtMS
	return []chunk{one}
}
