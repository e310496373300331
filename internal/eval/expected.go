package eval

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// Expected is the expected outcome of a case. Fields that are not set are not checked;
// every case expects that the recorded logs replay to the same end.
type Expected struct {
	// StopReason is how the run ends; the reason of a run that waits for the user is that of
	// its question.
	StopReason spec.Reason `yaml:"stop_reason,omitempty"`
	// MaxToolCalls is how often mocked tools may have run, retries included.
	MaxToolCalls *int `yaml:"max_tool_calls,omitempty"`
	// Forbidden tools never ran. They are tools of the run that no agent may use.
	Forbidden []string `yaml:"forbidden_tools,omitempty"`
	// Events must have happened: kinds of troupe, or proposal, validation, tool_result, stop,
	// action, observation, error, escalation.
	Events   []string `yaml:"requires_trace_events,omitempty"`
	NoEvents []string `yaml:"forbids_trace_events,omitempty"`

	Partial     *bool             `yaml:"partial,omitempty"`
	Parked      *bool             `yaml:"parked,omitempty"`      // it waits for the user, and is not over
	Transitions []spec.Transition `yaml:"transitions,omitempty"` // why the root's turns followed, all of them in order
	Turns       *int              `yaml:"turns,omitempty"`       // of the whole tree, without closing turns
	MaxTurns    *int              `yaml:"max_turns,omitempty"`
	MaxTokens   *int64            `yaml:"max_tokens,omitempty"`
	ToolRuns    map[string]int    `yaml:"tool_runs,omitempty"` // how often a mocked tool ran, exactly
	// FirstTools are the tools that the root proposed in its first turn with tools, in order.
	FirstTools []string `yaml:"first_tools,omitempty"`
	// Calls are the tools that agents proposed, in order, by the id of the agent.
	Calls     map[string][]string `yaml:"calls,omitempty"`
	Answer    []string            `yaml:"answer_contains,omitempty"`
	NotAnswer []string            `yaml:"answer_lacks,omitempty"`
	Detail    string              `yaml:"detail_contains,omitempty"`
	Question  string              `yaml:"question_contains,omitempty"` // of the agent that waits for the user
	// Told must be in some request to a model; NotTold must be in none.
	Told     []string `yaml:"model_was_told,omitempty"`
	NotTold  []string `yaml:"model_was_never_told,omitempty"`
	Children []Child  `yaml:"children,omitempty"` // all of them, in the order of their ids
}

// sanitizeTools gives all tools the names under which they run.
func (x *Expected) sanitizeTools() {
	x.ToolRuns = sanitizeKeys(x.ToolRuns)
	x.Forbidden, x.FirstTools = sanitizeNames(x.Forbidden), sanitizeNames(x.FirstTools)
	for agent, names := range x.Calls {
		x.Calls[agent] = sanitizeNames(names)
	}
}

// Child is how a child must end.
type Child struct {
	Name       string      `yaml:"name,omitempty"`
	StopReason spec.Reason `yaml:"stop_reason,omitempty"`
}

// eventAliases maps the event names of other tracers to troupe's kinds.
var eventAliases = map[string][]string{
	"proposal":    {event.KindToolProposed, event.KindStopProposed},
	"validation":  {event.KindToolValidated, event.KindToolDenied, event.KindStopAllowed, event.KindStopVetoed},
	"action":      {event.KindToolStarted, event.KindDelegationRequested},
	"tool_result": {event.KindToolFinished, event.KindDelegationFinished},
	"observation": {event.KindToolFinished, event.KindDelegationFinished},
	"error":       {event.KindErrorRaised},
	"escalation":  {event.KindQueryAsked, event.KindGuardrailEscalated},
	"stop":        {event.KindAgentFinished, event.KindRunFinished, event.KindAgentParked},
}

// escalations are the stop reasons with which a run turns to people.
var escalations = []spec.Reason{spec.NeedsHuman, spec.EvidenceMissing, spec.ResumeUnsafe}
