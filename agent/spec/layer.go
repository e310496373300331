package spec

// Layer is a named part of a system prompt. The parts of a prompt are sent in the order of their priorities: what the
// agent's definition says has 10, the date and the directory have 100.
//
// A layer without text removes the agent's own layer of its name. A layer takes the place of an earlier one of its
// name: of a layer of an agent above, which this agent inherits, and of a part of the agent's definition.
type Layer struct {
	Name     string `msgpack:"n" json:"name"`
	Text     string `msgpack:"t,omitempty" json:"text"`
	Priority int    `msgpack:"p,omitempty" json:"priority"` // 1 to 1000; 0: 50, of system 10 and of context 100
	// Owner is who set it.
	Owner string `msgpack:"o,omitempty" json:"owner,omitempty"`
	// Agent is the agent that it was set for.
	Agent ID `msgpack:"a,omitempty" json:"agent,omitempty"`
	// Below: agents below that agent inherit it.
	Below bool `msgpack:"b,omitempty" json:"below,omitempty"`
	// Merge adds it to the earlier layer of its name, instead of replacing that layer: after it, unless its priority
	// is lower.
	Merge bool `msgpack:"m,omitempty" json:"merge,omitempty"`
}
