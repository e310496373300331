package spec

// Limits of one agent. Zero means the default that WithDefaults gives.
type Limits struct {
	Turns      int   `msgpack:"t,omitempty" json:"turns"`               // model turns; 20 for a root, 80 for a child
	Calls      int   `msgpack:"c,omitempty" json:"tool_calls"`          // tool calls of this agent; 0: only the run's limit
	ReplyCalls int   `msgpack:"r,omitempty" json:"reply_calls"`         // calls run of one reply
	Parallel   int   `msgpack:"p,omitempty" json:"parallel"`            // tools at once
	Children   int   `msgpack:"h,omitempty" json:"children"`            // live children
	Malformed  int   `msgpack:"m,omitempty" json:"malformed"`           // useless replies in a row
	Cuts       int   `msgpack:"u,omitempty" json:"cuts"`                // continuations after a cut output, in a row
	Retries    int   `msgpack:"y,omitempty" json:"retries"`             // attempts after a failed model call, in a row
	Vetoes     int   `msgpack:"v,omitempty" json:"vetoes"`              // stops that a policy or a hook sends back, in a row
	Handoffs   int   `msgpack:"hf,omitempty" json:"handoffs,omitempty"` // of the conversation that it has
	Output     int64 `msgpack:"o,omitempty" json:"output_tokens"`       // output tokens a call
	Closing    int64 `msgpack:"l,omitempty" json:"closing_tokens"`      // output tokens of a closing turn
	SoftMS     int64 `msgpack:"s,omitempty" json:"soft_ms"`             // working time until the closing turn
	HardMS     int64 `msgpack:"d,omitempty" json:"hard_ms"`             // working time until the end
	Tokens     int64 `msgpack:"k,omitempty" json:"tokens"`              // own cap within the pool
	Nano       int64 `msgpack:"n,omitempty" json:"nano_usd"`            // own cap in money
}

// Defaults of Limits (CONTRACT: each is also a flag or a setting).
const (
	TurnsRoot        = 20
	turnsChild       = 80
	ReplyCallsMax    = 64
	parallelDefault  = 4
	ChildrenMax      = 8
	malformedDefault = 3
	cutsDefault      = 3
	RetriesMax       = 3
	VetoesMax        = 8
	handoffsMax      = 8
	OutputDefault    = 4096 // of a model whose own limit is unknown
	closingDefault   = 768
	OutputUseful     = 64 // a smaller grant leads to a closing turn
	SoftDefaultMS    = 15 * 60 * 1000
	HardDefaultMS    = 20 * 60 * 1000
)

// Off says "none at all" where zero means the default.
const Off = -1

// WithDefaults sets the limits that are zero.
func (l Limits) WithDefaults(depth int) Limits {
	turns := TurnsRoot
	if depth > 0 {
		turns = turnsChild //mutant:child-turns
	}
	fill := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	fill64 := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	fill(&l.Turns, turns)
	fill(&l.ReplyCalls, ReplyCallsMax)
	fill(&l.Parallel, parallelDefault)
	fill(&l.Children, ChildrenMax)
	fill(&l.Malformed, malformedDefault)
	fill(&l.Cuts, cutsDefault)
	fill(&l.Retries, RetriesMax)
	fill64(&l.Output, OutputDefault)
	fill64(&l.Closing, closingDefault)
	fill64(&l.SoftMS, SoftDefaultMS)
	fill64(&l.HardMS, HardDefaultMS)
	return l
}

const (
	// ParkDefaultMS is how long a run waits for people alone before it ends as unanswered.
	ParkDefaultMS = 30 * 24 * 3600 * 1000
	// TimeoutMaxMS is the longest limit of time that a client may ask for.
	TimeoutMaxMS = 366 * 24 * 3600 * 1000
	// hardGraceMS is the minimum time between the soft limit and the hard one.
	hardGraceMS = 60_000
)

// HardLimitMS is the hard limit of an agent that begins to sum up at the soft limit.
func HardLimitMS(soft int64) int64 { return soft + max(hardGraceMS, soft/3) }

// VetoesInARow is how often in a row a stop is sent back.
func (l Limits) VetoesInARow() int {
	if l.Vetoes == 0 {
		return VetoesMax
	}
	return max(l.Vetoes, 0)
}

// HandoffsInAll is how often a conversation may be handed off. It counts from the agent that began it.
func (l Limits) HandoffsInAll() int {
	if l.Handoffs == 0 {
		return handoffsMax
	}
	return max(l.Handoffs, 0)
}
