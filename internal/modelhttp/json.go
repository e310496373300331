package modelhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ValidText replaces bytes that are not UTF-8, which some servers send.
func ValidText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// EncodeBody writes a request as JSON. Characters that have a meaning in HTML stay as they
// are.
func EncodeBody(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil, UnsentError("the request does not encode")
	}
	return b.Bytes()[:b.Len()-1], nil // without the end of the line
}

// DecodeEvent decodes the object of an event. A field of another type than the struct has
// counts as absent: many servers speak the providers' APIs, and differ in fields that troupe does not use.
func DecodeEvent(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if err == nil {
		return nil
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte{'{'}) {
		return nil
	}
	return err
}

// hasMoreElements reports whether the lists of a JSON text have more than most elements. Of a text
// that is no JSON it reports anything.
func hasMoreElements(data []byte, most int) bool {
	if len(data) <= 2*most {
		return false // an element takes two bytes, with its comma
	}
	elements, quoted, open := 0, false, []byte(nil) // the open brackets
	for i := 0; i < len(data) && elements <= most; i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			open = append(open, c)
			if c == '[' {
				elements++
			}
		case len(open) == 0:
		case c == ']' || c == '}':
			open = open[:len(open)-1]
		case c == ',' && open[len(open)-1] == '[':
			elements++
		}
	}
	return elements > most
}

// Text is a text of an event. Servers that send another type mean its JSON; null is "".
type Text string

// UnmarshalJSON accepts any JSON.
func (t *Text) UnmarshalJSON(raw []byte) error {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	switch {
	case string(raw) == "null":
		return nil
	case raw[0] != '"':
		*t = Text(raw)
		return nil
	case bytes.IndexByte(raw, '\\') < 0:
		*t = Text(raw[1 : len(raw)-1])
		return nil
	}
	return json.Unmarshal(raw, (*string)(t))
}

// Count is a number of an event. Known is false for null and for what is no number.
type Count struct {
	N     int64
	Known bool
}

// UnmarshalJSON accepts any JSON: some servers write counts as fractions or texts.
func (c *Count) UnmarshalJSON(raw []byte) error {
	*c = Count{}
	text := string(bytes.Trim(raw, `"`))
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*c = Count{n, true}
	} else if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) {
		*c = Count{int64(max(min(f, math.MaxInt32<<16), -1)), true}
	}
	return nil
}

// IsNoError reports whether the field "error" of an event is absent, or has a value by which
// servers that always send the field mean that there is none.
func IsNoError(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", `""`:
		return true
	}
	return raw[0] == '{' && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
}
