// Package model holds the nouns of a chat model: messages, tool calls, usage, a
// request, a reply, and the Client that every provider implements.
//
// The types are plain data. They are stored in logs (msgpack), so a field is
// never renamed and never changes its meaning; new fields are optional.
package model

import "context"

// Role is the author of a message.
type Role string

// The three roles of a transcript. The system prompt is not a message: it is
// Request.System. A tool message answers every call of the assistant message
// directly before it, in the order asked.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one entry of a transcript.
type Message struct {
	Role Role `msgpack:"r" json:"role"`
	// Text is the text of the message. For a tool message it is empty: see Results.
	Text string `msgpack:"t,omitempty" json:"text,omitempty"`
	// Media of a user message come before its text.
	Media []Media `msgpack:"m,omitempty" json:"media,omitempty"`
	// Calls are the tool calls of an assistant message, in the order in which the model made them.
	Calls []ToolCall `msgpack:"c,omitempty" json:"calls,omitempty"`
	// Results answer the calls of the previous assistant message, with the same ids in the same order.
	Results []ToolResult `msgpack:"s,omitempty" json:"results,omitempty"`
	// Opaque is provider data (thinking signatures and the like) that an adapter sends back
	// verbatim to its issuer, and to no other provider.
	Opaque []Opaque `msgpack:"o,omitempty" json:"opaque,omitempty"`
	// Usage is what the call that produced this assistant message cost.
	Usage *Usage `msgpack:"u,omitempty" json:"usage,omitempty"`
	// Tokens estimates how many tokens its texts add to a prompt; 0: not counted.
	Tokens int64 `msgpack:"n,omitempty" json:"tokens,omitempty"`
	// Tombstone marks a message that stays in the record and is never sent or shown.
	Tombstone bool `msgpack:"x,omitempty" json:"tombstone,omitempty"`
	// Interrupted marks the part of a reply that had arrived when a cancel cut its stream.
	Interrupted bool `msgpack:"b,omitempty" json:"interrupted,omitempty"`
}

// Opaque is a blob that only Issuer ("provider/model") understands.
type Opaque struct {
	Issuer string `msgpack:"i" json:"issuer"`
	Kind   string `msgpack:"k" json:"kind"`
	Data   []byte `msgpack:"d" json:"data"`
}

// ToolCall is a request of the model to run a tool.
//
// ID is ours ("<turn>-<index>", stable over replays), set by the agent loop; a
// Client leaves it empty in a Reply. The provider's own ids never leave the
// adapter, which derives wire ids from ours when it sends a transcript.
type ToolCall struct {
	ID   string `msgpack:"i,omitempty" json:"id"`
	Name string `msgpack:"n" json:"name"`
	// Args is the JSON text exactly as the model wrote it; it may be broken.
	Args string `msgpack:"a" json:"args"`
	// Cut is true when the stream ended inside the arguments and they do not decode.
	Cut bool `msgpack:"c,omitempty" json:"cut,omitempty"`
}

// ToolResult answers one ToolCall.
type ToolResult struct {
	Call  string `msgpack:"i" json:"call"`
	Text  string `msgpack:"t" json:"text"`
	Error bool   `msgpack:"e,omitempty" json:"error,omitempty"`
}

// Usage counts tokens as the provider reported them. Input excludes cached
// tokens: the four numbers other than Reasoning add up to the tokens processed.
type Usage struct {
	Input  int64 `msgpack:"i" json:"input_tokens"`
	Output int64 `msgpack:"o" json:"output_tokens"`
	// Reasoning is the part of Output that is reasoning, if the provider reports it:
	// it is information, and no part of any sum.
	Reasoning     int64 `msgpack:"g,omitempty" json:"reasoning_tokens,omitempty"`
	CacheRead     int64 `msgpack:"r,omitempty" json:"cache_read_input_tokens"`
	CacheCreation int64 `msgpack:"w,omitempty" json:"cache_creation_input_tokens"`
}

// Total is the sum at face value.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheCreation }

// Prompt is the part of Total that the request caused.
func (u Usage) Prompt() int64 { return u.Input + u.CacheRead + u.CacheCreation }

// usageMax is more tokens than any call has, and few enough that no product with a price
// overflows.
const usageMax = 1 << 32

// InRange reports whether each number can be one of a call: a usage that is not in range counts as unknown.
func (u Usage) InRange() bool {
	for _, n := range [...]int64{u.Input, u.Output, u.Reasoning, u.CacheRead, u.CacheCreation} {
		if n < 0 || n > usageMax {
			return false
		}
	}
	return true
}

// Add sums two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{Input: u.Input + v.Input, Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning,
		CacheRead: u.CacheRead + v.CacheRead, CacheCreation: u.CacheCreation + v.CacheCreation}
}

// Class classifies the effect of running a tool twice. The operator sets it.
type Class string

// Read may run at any time and any number of times. Idempotent may run again
// with the same key. Effect and Irreversible run at most once per decision.
const (
	Read         Class = "read"
	Idempotent   Class = "idempotent"
	Effect       Class = "effect"
	Irreversible Class = "irreversible"
)

// ToolSpec is the description of a tool that a model reads, and the tool's effect class.
type ToolSpec struct {
	Name        string `msgpack:"n" json:"name"`
	Description string `msgpack:"d" json:"description"`
	// Schema is the JSON Schema (an object schema) of the arguments, as JSON text.
	Schema string `msgpack:"s" json:"input_schema"`
	Class  Class  `msgpack:"c" json:"class"`
	// Poll marks a tool that is made to be called repeatedly: loop detection ignores it. The
	// operator sets it.
	Poll bool `msgpack:"p,omitempty" json:"poll,omitempty"`
	// Data is what the tool does with data, as the operator or the program states it: words of outside, private and sends,
	// with commas, or none. "": nothing is stated, and its kind decides (docs/taint.md).
	Data string `msgpack:"u,omitempty" json:"data,omitempty"`
}

// Request is one attempt to get one reply.
type Request struct {
	// Model is the name within the provider ("claude-…"), not "provider/model".
	Model  string
	System string
	// Dynamic is the part of the system prompt that may change within a run. It
	// comes after System, behind the cache breakpoint.
	Dynamic  string
	Messages []Message
	Tools    []ToolSpec
	// MaxOutput is the most output tokens this attempt may be billed for. Always > 0.
	MaxOutput int64
	// NoTools forbids tool calls though Tools are listed (a closing turn: the
	// history still names them).
	NoTools bool
	// Choice forces a tool: "any" one, or the named one; "" leaves the choice to
	// the model. A provider that cannot force ignores it; NoTools wins over it.
	Choice      string
	Temperature *float64
	Effort      string // "", low, medium, high
	// Schema is the JSON Schema that the text of the reply should meet, if it
	// calls no tool; "" is none. An adapter renders what its API accepts of it, or
	// nothing: the caller checks the reply itself.
	Schema string
	// Caller is the agent whose turn the request is; empty for other requests, such as that of a
	// summary. Models without an LLM act by it. An adapter does not send it.
	Caller Caller
}

// Caller identifies an agent.
type Caller struct {
	ID   string // within its run: "root-1-0"
	Name string // of its definition: "historian"
	Node string // that asks for it
}

// Stop is the provider's own reason for ending a reply: information, never a decision.
type Stop string

// What adapters map provider reasons to.
const (
	StopEnd       Stop = "end"
	StopTools     Stop = "tools"
	StopMaxOutput Stop = "max_output"
	StopRefusal   Stop = "refusal"
	StopUnknown   Stop = "unknown"
)

// ChoiceAny is the Choice of any tool.
const ChoiceAny = "any"

// Reply is what came back. Message.Role is Assistant.
type Reply struct {
	Message Message `msgpack:"m"`
	Stop    Stop    `msgpack:"s"`
	Usage   Usage   `msgpack:"u"`
	// UsageKnown is false when the provider did not report usage (a cut stream):
	// then the whole reservation counts as spent.
	UsageKnown bool `msgpack:"k"`
	// Served is the model that answered, as the provider named it.
	Served string `msgpack:"v,omitempty"`
	// Limits are what the provider reported, also with an error. Logs do not record them.
	Limits RateLimits `msgpack:"-" json:"-"`
}

// RateLimits are what a provider reports about a key: the requests and tokens that it accepts in a
// minute, and how many of them are left. A limit of 0 was not reported.
type RateLimits struct {
	Requests, RequestsLeft int64
	Tokens, TokensLeft     int64
	// CacheReadsFree: tokens that are read from the provider's cache do not count.
	CacheReadsFree bool
}

// DeltaKind is the kind of content of a Delta.
type DeltaKind string

// Kinds of delta.
const (
	TextDelta      DeltaKind = "text"
	ReasoningDelta DeltaKind = "reasoning"
)

// Delta is a piece of a reply as it streams. Deltas may be lost; the Reply is complete.
type Delta struct {
	Kind DeltaKind
	Text string
}

// Client makes one attempt of one model call. It never retries: every attempt
// holds a reservation of its own.
//
// emit may be nil; it is called from the caller's goroutine and must not block.
// On error the Reply holds what had arrived (complete calls, text), and the
// error is an *Error wherever the cause is known. A Client is safe for
// concurrent use.
type Client interface {
	Complete(ctx context.Context, req Request, emit func(Delta)) (Reply, error)
}
