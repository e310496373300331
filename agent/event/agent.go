package event

import "github.com/troupe-run/troupe/agent/spec"

// ResumeUnsafe is checkpoint.resume_unsafe: the agent does not continue by itself
// after an activation, because only a person can permit that. Call is the side
// effect of unknown outcome; otherwise Differs lists how the node differs from the
// record.
type ResumeUnsafe struct {
	Query   string   `json:"query"`
	Call    string   `json:"call,omitempty"`
	Differs []string `json:"differs,omitempty"`
}

// AgentSaid is message.agent: a message from another agent of the run to this one.
type AgentSaid struct {
	From  spec.ID `json:"from"`
	Name  string  `json:"name,omitempty"`
	Text  string  `json:"text,omitempty"`
	Bytes int     `json:"bytes"`
}

// AgentHandedOff is agent.handed_off: another agent has the conversation of this one now, and answers in its place.
type AgentHandedOff struct {
	Call string  `json:"call"`
	To   spec.ID `json:"to"`
	Name string  `json:"name"` // of its definition
}

// AgentTainted is agent.tainted: the agent has read text from outside for the first time. From now on its calls that
// send data out need an approval of their own (docs/taint.md).
type AgentTainted struct {
	spec.Taint
}

// AgentWaiting is agent.waiting: the agent has claimed completion and waits for
// its background children.
type AgentWaiting struct {
	Children []spec.ID `json:"children"`
}
