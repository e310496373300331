package modelhttp

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/troupe-run/troupe/model"
)

// JSONWriter writes the body of a request, byte for byte as EncodeBody does, without a value for each message: a turn
// sends the whole transcript again. It places the commas. NewJSONWriter returns one.
type JSONWriter struct {
	buf    []byte
	failed bool
}

// Bytes that field names and ids take, about.
const (
	messageOverhead = 36
	callOverhead    = 96
	resultOverhead  = 60
	bodyOverhead    = 1 << 10
)

// jsonWriters are writers whose bodies were sent: a body is as long as the transcript, and every turn writes one.
var jsonWriters sync.Pool

// Bounds on a buffer that is used again: an agent that waits for its model holds it, so a small request has no large one.
const (
	reusedBytes = 4 << 20
	reusedTimes = 4 // what its request needs
)

// NewJSONWriter returns a writer with room for a request, so that its buffer hardly grows.
func NewJSONWriter(req model.Request) *JSONWriter {
	size := bodySize(req)
	w, _ := jsonWriters.Get().(*JSONWriter)
	if w == nil || cap(w.buf) > reusedTimes*size {
		w = &JSONWriter{}
	}
	*w = JSONWriter{buf: slices.Grow(w.buf[:0], size)}
	return w
}

// Reuse lets the next request have the buffer. Nothing may read the body any more.
func (w *JSONWriter) Reuse() {
	if cap(w.buf) <= reusedBytes {
		jsonWriters.Put(w)
	}
}

// bodySize estimates the length of a body.
func bodySize(req model.Request) int {
	size := len(req.System) + len(req.Dynamic) + bodyOverhead
	for i := range req.Messages {
		m := &req.Messages[i]
		size += len(m.Text) + messageOverhead
		for j := range m.Calls {
			size += len(m.Calls[j].Name) + len(m.Calls[j].Args) + callOverhead
		}
		for j := range m.Results {
			size += len(m.Results[j].Text) + resultOverhead
		}
	}
	for i := range req.Tools {
		size += len(req.Tools[i].Description) + len(req.Tools[i].Schema) + callOverhead
	}
	return size + size/16 // quotes and ends of lines are escaped
}

// Body returns what was written, or an error if a value did not encode.
func (w *JSONWriter) Body() ([]byte, error) {
	if w.failed {
		return nil, UnsentError("the request does not encode")
	}
	return w.buf, nil
}

// Open begins an object ('{') or a list ('[').
func (w *JSONWriter) Open(bracket byte) {
	w.separate()
	w.buf = append(w.buf, bracket)
}

// Close ends an object ('}') or a list (']').
func (w *JSONWriter) Close(bracket byte) { w.buf = append(w.buf, bracket) }

// Name begins a field. The name has no character to escape.
func (w *JSONWriter) Name(name string) {
	w.separate()
	w.buf = append(append(append(w.buf, '"'), name...), '"', ':')
}

// Text writes a string.
func (w *JSONWriter) Text(s string) {
	w.separate()
	w.buf = append(w.buf, '"')
	w.appendEscaped(s)
	w.buf = append(w.buf, '"')
}

// TextField writes a field with a string.
func (w *JSONWriter) TextField(name, s string) {
	w.Name(name)
	w.Text(s)
}

// OptionalField writes a field with a string, unless the string is empty.
func (w *JSONWriter) OptionalField(name, s string) {
	if s != "" {
		w.TextField(name, s)
	}
}

// IntField writes a field with a number.
func (w *JSONWriter) IntField(name string, n int64) {
	w.Name(name)
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

// LiteralField writes a field with a value that is JSON.
func (w *JSONWriter) LiteralField(name, value string) {
	w.Name(name)
	w.buf = append(w.buf, value...)
}

// RawField writes a field with a value that is JSON without white space, such as ToolSchema returns.
func (w *JSONWriter) RawField(name string, raw json.RawMessage) {
	w.Name(name)
	w.buf = append(w.buf, raw...)
}

// ValueField writes a field with a value of any type, for the rare parts of a body.
func (w *JSONWriter) ValueField(name string, v any) {
	w.Name(name)
	raw, err := EncodeBody(v)
	w.failed = w.failed || err != nil
	w.buf = append(w.buf, raw...)
}

// CallID writes what CallID returns.
func (w *JSONWriter) CallID(prefix, id string) {
	w.separate()
	w.buf = append(appendCallID(append(w.buf, '"'), prefix, id), '"')
}

// ArgumentsText writes what CallArguments returns as a string.
func (w *JSONWriter) ArgumentsText(c *model.ToolCall) {
	if utf8.ValidString(c.Args) && w.isObject(c.Args) {
		w.Text(c.Args)
		return
	}
	w.Text(string(CallArguments(*c)))
}

// isObject is IsObject, with the free end of the buffer for its copy of the text.
func (w *JSONWriter) isObject(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '{' {
		return false
	}
	n := len(w.buf)
	w.buf = append(w.buf, text...)
	ok := json.Valid(w.buf[n:])
	w.buf = w.buf[:n]
	return ok
}

// separate writes the comma before a value or a name that is not the first one.
func (w *JSONWriter) separate() {
	if len(w.buf) == 0 {
		return
	}
	switch w.buf[len(w.buf)-1] {
	case '{', '[', ':':
	default:
		w.buf = append(w.buf, ',')
	}
}

const hexDigits = "0123456789abcdef"

// appendEscaped appends a text with what a JSON string escapes. Bytes that are not UTF-8 become the replacement
// character; the two separators that JavaScript takes for ends of lines are escaped.
func (w *JSONWriter) appendEscaped(s string) {
	dst, from := w.buf, 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
		}
		dst = appendEscape(append(dst, s[from:i]...), s[i:i+size])
		i += size
		from = i
	}
	w.buf = append(dst, s[from:]...)
}

// appendEscape appends the escape of one character.
func appendEscape(dst []byte, char string) []byte {
	switch c := char[0]; {
	case char == "\u2028" || char == "\u2029":
		return append(append(dst, `\u202`...), hexDigits[char[2]&0xf])
	case c >= utf8.RuneSelf:
		return append(dst, `\ufffd`...)
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c == '\n':
		return append(dst, '\\', 'n')
	case c == '\r':
		return append(dst, '\\', 'r')
	case c == '\t':
		return append(dst, '\\', 't')
	case c == '\b':
		return append(dst, '\\', 'b')
	case c == '\f':
		return append(dst, '\\', 'f')
	default:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
}
