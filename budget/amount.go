// Package budget is the ledger of one run: a pool of tokens, money and tool calls,
// the reservations that every model call holds before it may spend, and the upper
// bounds that make a reservation strict.
//
// Everything here is a value without a clock, a goroutine or an error: the
// supervisor steps it.
package budget

import "github.com/troupe-run/troupe/model"

// Amount is the possible or actual cost of a call: tokens at face value, money in
// billionths of a US dollar, tool calls.
type Amount struct {
	Tokens int64 `msgpack:"t,omitempty" json:"tokens"`
	Nano   int64 `msgpack:"n,omitempty" json:"nano_usd"`
	Calls  int64 `msgpack:"c,omitempty" json:"calls"`
}

// NanoPerUSD is how many billionths a US dollar has.
const NanoPerUSD = 1_000_000_000

// Plus adds.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.Tokens + b.Tokens, a.Nano + b.Nano, a.Calls + b.Calls}
}

// Minus subtracts; a component may become negative.
func (a Amount) Minus(b Amount) Amount {
	return Amount{a.Tokens - b.Tokens, a.Nano - b.Nano, a.Calls - b.Calls}
}

// Over is the part that exceeds b, component by component, never negative.
func (a Amount) Over(b Amount) Amount {
	return Amount{max(0, a.Tokens-b.Tokens), max(0, a.Nano-b.Nano), max(0, a.Calls-b.Calls)}
}

// Zero reports whether all components are zero.
func (a Amount) Zero() bool { return a == Amount{} }

// Limit caps an Amount; a component of zero is not limited.
type Limit Amount

// Room is the amount that the limit leaves after used; components without a limit
// come back as Unlimited.
func (l Limit) Room(used Amount) Amount {
	room := func(limit, used int64) int64 {
		if limit == 0 {
			return Unlimited
		}
		return limit - used
	}
	return Amount{room(l.Tokens, used.Tokens), room(l.Nano, used.Nano), room(l.Calls, used.Calls)}
}

// Unlimited is the room of a component without a limit. It is far below the range
// of int64 so that sums of a few of them do not overflow.
const Unlimited int64 = 1 << 60

// EnvelopeTokens bounds the cost of one message, call, result or tool schema
// beyond its own bytes.
const EnvelopeTokens = 16

// Text bounds the tokens of a text: a byte-level BPE never makes more tokens
// than UTF-8 bytes.
func Text(s string) int64 { return int64(len(s)) }

// Message bounds the tokens that one message adds to a prompt.
func Message(m model.Message) int64 {
	if m.Tombstone {
		return 0
	}
	n := EnvelopeTokens + Text(m.Text)
	for _, d := range m.Media {
		n += EnvelopeTokens + Text(d.Name) + Media(d)
	}
	for _, c := range m.Calls {
		n += EnvelopeTokens + Text(c.Name) + Text(c.Args) + Text(c.ID)
	}
	for _, r := range m.Results {
		n += EnvelopeTokens + Text(r.Text) + Text(r.Call)
	}
	for _, o := range m.Opaque {
		n += EnvelopeTokens + int64(len(o.Data))
	}
	return n
}

// UnboundedTokens are reserved for a medium whose maximum cost is not published. A
// person has allowed such media by name.
const UnboundedTokens = 50_000

// Media bounds the tokens of a medium.
func Media(m model.Media) int64 {
	if m.Most <= 0 || m.Most > requestTokensMax {
		return UnboundedTokens
	}
	return m.Most
}

// Tools bounds the tokens of tool schemas.
func Tools(specs []model.ToolSpec) int64 {
	var n int64
	for _, s := range specs {
		n += EnvelopeTokens + Text(s.Name) + Text(s.Description) + Text(s.Schema)
	}
	return n
}
