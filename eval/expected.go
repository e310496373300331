package eval

import "github.com/troupe-run/troupe/agent"

// Expected is what must come of a case. What is not set is not looked at; that
// the recorded logs replay to the same end is always expected.
type Expected struct {
	// StopReason is how the run ends; one that waits for a person has the reason
	// of its question.
	StopReason agent.Reason `yaml:"stop_reason"`
	// MaxToolCalls is how often mocked tools may have run, retries included.
	MaxToolCalls *int `yaml:"max_tool_calls"`
	// Forbidden tools never ran. They are tools of the run that no agent may use.
	Forbidden []string `yaml:"forbidden_tools"`
	// Events must have happened: kinds of ours, or proposal, validation,
	// tool_result, stop, action, observation, error, escalation.
	Events   []string `yaml:"requires_trace_events"`
	NoEvents []string `yaml:"forbids_trace_events"`

	Partial     *bool              `yaml:"partial"`
	Parked      *bool              `yaml:"parked"`      // it waits for a person, and is not over
	Transitions []agent.Transition `yaml:"transitions"` // why the root's turns followed, all of them in order
	Turns       *int               `yaml:"turns"`       // of the whole tree, without closing turns
	MaxTurns    *int               `yaml:"max_turns"`
	MaxTokens   *int64             `yaml:"max_tokens"`
	ToolRuns    map[string]int     `yaml:"tool_runs"` // how often a mocked tool ran, exactly
	// FirstTools are the tools that the root proposed in its first turn with tools, in order.
	FirstTools []string `yaml:"first_tools"`
	Answer     []string `yaml:"answer_contains"`
	NotAnswer  []string `yaml:"answer_lacks"`
	Detail     string   `yaml:"detail_contains"`
	Question   string   `yaml:"question_contains"` // of who waits for a person
	// Told is what some request to a model must hold; NotTold what none may.
	Told     []string `yaml:"model_was_told"`
	NotTold  []string `yaml:"model_was_never_told"`
	Children []Child  `yaml:"children"` // all of them, in the order of their ids
}

// Child is how a child must end.
type Child struct {
	Name       string       `yaml:"name"`
	StopReason agent.Reason `yaml:"stop_reason"`
}

// words are what the events of other tracers are called, and our kinds of each.
var words = map[string][]string{
	"proposal":    {"tool.proposed", "stop.proposed"},
	"validation":  {"tool.validated", "tool.denied", "stop.allowed", "stop.vetoed"},
	"action":      {"tool.started", "delegation.requested"},
	"tool_result": {"tool.finished", "delegation.finished"},
	"observation": {"tool.finished", "delegation.finished"},
	"error":       {"error.raised"},
	"escalation":  {"query.asked", "guardrail.escalated"},
	"stop":        {"agent.finished", "run.finished", "agent.parked"},
}

// escalations are the ends by which a run turns to people.
var escalations = []agent.Reason{agent.NeedsHuman, agent.EvidenceMissing, agent.ResumeUnsafe}
