package modelhttp

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Cursor reads one JSON text from its beginning to its end, for events of which only a few fields count: a reply is an
// event for each token. It never guesses: at the first thing that it does not know, or that is no JSON, it has failed,
// and encoding/json decides what the text means. A failed cursor reads zero values. FuzzChunk holds that what it reads is
// what encoding/json reads.
type Cursor struct {
	data   []byte
	at     int
	failed bool
}

// NewCursor begins to read a text.
func NewCursor(data []byte) Cursor { return Cursor{data: data} }

// Fail ends the reading.
func (c *Cursor) Fail() { c.failed, c.at = true, len(c.data) }

// IsWhole reports whether the text was read to its end.
func (c *Cursor) IsWhole() bool { return !c.failed && c.peek() == 0 && c.at == len(c.data) }

// peek returns the next character that is not a space; 0 at the end.
func (c *Cursor) peek() byte {
	for ; c.at < len(c.data); c.at++ {
		switch b := c.data[c.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

func (c *Cursor) expect(b byte) {
	if c.peek() != b || b == 0 {
		c.Fail()
		return
	}
	c.at++
}

// SkipNull skips a null, and reports whether there was one.
func (c *Cursor) SkipNull() bool {
	if c.peek() != 'n' {
		return false
	}
	return c.literal("null")
}

func (c *Cursor) literal(word string) bool {
	if !bytes.HasPrefix(c.data[c.at:], []byte(word)) {
		c.Fail()
		return false
	}
	c.at += len(word)
	return true
}

// Fields yields the keys of an object, or none of null. Its user reads or skips the value of each.
func (c *Cursor) Fields(yield func(key []byte) bool) {
	if c.SkipNull() {
		return
	}
	c.expect('{')
	for first := true; c.more('}', first); first = false {
		key, escaped := c.quoted()
		if escaped {
			c.Fail()
		}
		if c.expect(':'); c.failed || !yield(key) {
			return
		}
	}
}

// Elements yields for each element of a list, or never of null. Its user reads or skips the element.
func (c *Cursor) Elements(yield func() bool) {
	if c.SkipNull() {
		return
	}
	c.expect('[')
	for first := true; c.more(']', first); first = false {
		if !yield() {
			return
		}
	}
}

// more reports whether another member follows, and takes the comma before it or the end of the whole.
func (c *Cursor) more(end byte, first bool) bool {
	switch b := c.peek(); {
	case c.failed:
		return false
	case b == end:
		c.at++
		return false
	case first:
		return true
	}
	c.expect(',')
	return !c.failed
}

// quoted returns what stands between two quotes.
func (c *Cursor) quoted() (raw []byte, escaped bool) {
	c.expect('"')
	from := c.at
	for ; c.at < len(c.data); c.at++ {
		switch b := c.data[c.at]; {
		case b == '"':
			c.at++
			return c.data[from : c.at-1], escaped
		case b == '\\':
			escaped = true
			c.at++
		case b < ' ':
			c.Fail()
			return nil, false
		}
	}
	c.Fail()
	return nil, false
}

// Text reads a string, or null, into an empty text.
func (c *Cursor) Text(to *Text) { c.TextLike(to, "") }

// String is Text for a field that takes no other type.
func (c *Cursor) String(to *string) {
	text := Text(*to)
	c.Text(&text)
	*to = string(text)
}

// TextLike is Text, and does not make a text again that equals like.
func (c *Cursor) TextLike(to *Text, like Text) {
	if c.SkipNull() {
		return
	}
	raw, escaped := c.quoted()
	switch {
	case *to != "" || !utf8.Valid(raw): // named twice, or to be repaired
		c.Fail()
	case escaped:
		var room [256]byte
		text, ok := appendUnescaped(room[:0], raw)
		if *to = Text(text); !ok {
			c.Fail()
		}
	case string(raw) == string(like):
		*to = like
	default:
		*to = Text(raw)
	}
}

// appendUnescaped appends the text that a string with escapes means. It does not know surrogates.
func appendUnescaped(dst, raw []byte) (text []byte, ok bool) {
	for len(raw) > 0 {
		plain := bytes.IndexByte(raw, '\\')
		if plain < 0 {
			return append(dst, raw...), true
		}
		dst, raw = append(dst, raw[:plain]...), raw[plain+1:]
		if raw[0] == 'u' {
			if len(raw) < 5 {
				return nil, false
			}
			r, err := strconv.ParseUint(string(raw[1:5]), 16, 16)
			if err != nil || r >= 0xd800 && r < 0xe000 {
				return nil, false
			}
			dst, raw = utf8.AppendRune(dst, rune(r)), raw[5:]
			continue
		}
		i := bytes.IndexByte([]byte(`"\/bfnrt`), raw[0])
		if i < 0 {
			return nil, false
		}
		dst, raw = append(dst, "\"\\/\b\f\n\r\t"[i]), raw[1:]
	}
	return dst, true
}

// Count reads a whole number, or null, into a count that is not known.
func (c *Cursor) Count(to *Count) {
	if to.Known {
		c.Fail() // named twice
	}
	if c.SkipNull() {
		return
	}
	c.peek()
	digits := c.digits()
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		c.Fail() // a sign, a fraction or a text
		return
	}
	*to = Count{n, true}
}

// digits takes digits, which must stand here: no space may come before them. None is a failure.
func (c *Cursor) digits() []byte {
	from := c.at
	for c.at < len(c.data) && c.data[c.at] >= '0' && c.data[c.at] <= '9' {
		c.at++
	}
	digits := c.data[from:c.at]
	if len(digits) == 0 {
		c.Fail()
	}
	return digits
}

// Skip skips the value of a field that the reader does not know. encoding/json would take a key with capitals for the same
// as one without.
func (c *Cursor) Skip(key []byte) {
	for _, b := range key {
		if b >= 'A' && b <= 'Z' || b >= utf8.RuneSelf {
			c.Fail()
		}
	}
	c.skip(skipDepth)
}

// skipDepth bounds the nesting of what is skipped.
const skipDepth = 50

func (c *Cursor) skip(depth int) {
	switch b := c.peek(); {
	case depth == 0:
		c.Fail()
	case b == '{':
		for range c.Fields {
			c.skip(depth - 1)
		}
	case b == '[':
		for range c.Elements {
			c.skip(depth - 1)
		}
	case b == '"':
		c.skipText()
	case b == 't':
		c.literal("true")
	case b == 'f':
		c.literal("false")
	case b == 'n':
		c.literal("null")
	default:
		c.skipNumber()
	}
}

// skipText skips a string. With escapes it must be one that Text could read.
func (c *Cursor) skipText() {
	raw, escaped := c.quoted()
	if !escaped {
		return
	}
	var room [256]byte
	if _, ok := appendUnescaped(room[:0], raw); !ok {
		c.Fail()
	}
}

// skipNumber skips a number without an exponent.
func (c *Cursor) skipNumber() {
	if c.peek() == '-' {
		c.at++
	}
	if digits := c.digits(); len(digits) > 1 && digits[0] == '0' {
		c.Fail()
	}
	if c.at < len(c.data) && c.data[c.at] == '.' {
		c.at++
		c.digits()
	}
}
