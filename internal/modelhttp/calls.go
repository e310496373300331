package modelhttp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// MaxCalls bounds the calls of one reply; pieces of further ones are dropped.
// It is far above what the agent loop answers (64).
const MaxCalls = 1024

// CallAssembler assembles the tool calls of one reply from the pieces of a stream. The zero value
// is ready.
type CallAssembler struct {
	list  []*partialCall
	bytes int
}

type partialCall struct {
	index int64
	id    string
	name  string
	args  strings.Builder
	seen  objectScanner // of args, as far as a repeated name made it read them
	ended bool
}

// AddDelta adds one piece. Pieces belong together by id, and by index if they have no id. A
// new name at an index whose arguments are complete begins another call: servers that
// stream whole calls repeat index 0 for all of them.
func (c *CallAssembler) AddDelta(index int64, id, name, args string) {
	k := c.continuedCall(index, id, name)
	if k == nil {
		if len(c.list) >= MaxCalls {
			return
		}
		k = &partialCall{index: index, id: id}
		c.list = append(c.list, k)
	}
	if k.id == "" {
		k.id = id
	}
	if k.name == "" {
		k.name = name
		c.bytes += len(name)
	}
	k.args.WriteString(args)
	c.bytes += len(args)
}

// continuedCall returns the call that a piece continues, the latest first.
func (c *CallAssembler) continuedCall(index int64, id, name string) *partialCall {
	for i := len(c.list) - 1; i >= 0; i-- {
		k := c.list[i]
		switch {
		case id != "" && k.id != "": //mutant:calls-joined-by-index
			// One id at two places is two calls, if the second brings a name.
			if k.id == id && (k.index == index || name == "") {
				return k
			}
		case k.index == index:
			if name != "" && k.name != "" && k.seen.scanUpTo(k.args.String()) {
				return nil
			}
			return k
		}
	}
	return nil
}

// objectScanner finds the end of a JSON object in a text that grows. It reads each byte once,
// however often it is called.
type objectScanner struct {
	read            int // bytes of the text
	depth           int // of open brackets
	quoted, escaped bool
	whole           bool // the text so far is one object
	broken          bool // the text so far begins no object, or goes on after it
}

// scanUpTo scans what follows the text of the call before, and reports whether the text is one JSON object.
func (s *objectScanner) scanUpTo(text string) bool {
	for ; s.read < len(text) && !s.broken; s.read++ {
		switch c := text[s.read]; {
		case s.escaped:
			s.escaped = false
		case s.quoted:
			s.escaped, s.quoted = c == '\\', c != '"'
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case s.whole || s.depth == 0 && c != '{':
			s.whole, s.broken = false, true
		case c == '"':
			s.quoted = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			if s.depth--; s.depth == 0 {
				s.whole = IsObject(text[:s.read+1])
				s.broken = !s.whole
			}
		}
	}
	return s.whole
}

// EndCall records that the provider marked the call at an index as complete.
func (c *CallAssembler) EndCall(index int64) {
	for _, k := range c.list {
		if k.index == index {
			k.ended = true
		}
	}
}

// EndAll records that the provider marked the reply as complete.
func (c *CallAssembler) EndAll() {
	for _, k := range c.list {
		k.ended = true
	}
}

// Size grows with each piece that was kept.
func (c *CallAssembler) Size() int { return len(c.list) + c.bytes }

// Len is how many calls have begun.
func (c *CallAssembler) Len() int { return len(c.list) }

// ToolCalls returns the calls in the order in which they began, without ids. Arguments that
// decode make a call, whether its end was marked or not. Arguments that do not decode are
// kept as text: as Cut if the end was not marked, or if limit says that the provider cut
// this reply at its output limit and the call is the last one. Only a call that was marked
// complete without any arguments gets "{}": providers write a call without arguments in
// this way.
func (c *CallAssembler) ToolCalls(limit bool) []model.ToolCall {
	var out []model.ToolCall
	for i, k := range c.list {
		args := strings.ToValidUTF8(k.args.String(), "\uFFFD")
		open := !k.ended || limit && i == len(c.list)-1
		t := model.ToolCall{Name: strings.ToValidUTF8(k.name, "\uFFFD"), Args: args}
		switch {
		case IsObject(args):
		case open:
			t.Cut = true
		case strings.TrimSpace(args) == "":
			t.Args = "{}"
		}
		out = append(out, t)
	}
	return out
}

// IsObject reports whether text is one JSON object.
func IsObject(text string) bool {
	trimmed := bytes.TrimSpace([]byte(text))
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed)
}

// IsPlausibleUsage reports whether a reported usage can be true: no prompt has zero tokens.
// Servers that do not count report zeros; IsPlausibleUsage treats them as unknown usage.
func IsPlausibleUsage(u model.Usage) bool {
	return u.InRange() && u.Prompt() > 0
}
