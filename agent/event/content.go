package event

import "strings"

// WithoutContent returns the data of an event without the texts of people, models and tools.
func WithoutContent(data any) any {
	switch d := data.(type) {
	case RunStarted:
		d.Goal, d.Caller = "", ""
		return d
	case Result:
		return resultWithoutContent(d)
	case AgentStarted:
		d.Goal = ""
		return d
	case AgentParked:
		d.Question, d.Rule, d.Digest = "", "", ""
		return d
	case QueryAnswered:
		d.Why, d.Digest = "", ""
		return d
	case QueryRefused:
		d.Why = ""
		return d
	case AgentFinished:
		d.Text, d.Journal, d.Detail = "", "", ""
		return d
	case ModelFinished:
		d.Detail = ""
		return d
	case Fallback:
		d.Error = ""
		return d
	case Delta:
		return Delta{}
	case Progress:
		d.Message = ""
		return d
	case Said:
		d.Text = ""
		return d
	case AgentSaid:
		d.Text = ""
		return d
	case AgentTainted:
		d.Tool = toolName(d.Tool)
		return d
	case ToolCall:
		d.Tool, d.Args, d.Text = toolName(d.Tool), "", ""
		return d
	case ToolRetry:
		d.Text = ""
		return d
	case Stop:
		d.Why = ""
		return d
	case BacklogTask:
		d.Title, d.Text, d.Result, d.Why = "", "", "", ""
		return d
	case JournalUpdated:
		d.Digest = ""
		return d
	case Warning:
		d.Why = ""
		return d
	case LaneFailed:
		d.Why = ""
		return d
	case LoopDetected:
		d.Tool = toolName(d.Tool)
		return d
	}
	return hookWithoutContent(data)
}

// noToolName replaces the name of a tool that no tool can have: a model writes there what it likes.
const noToolName = "unknown"

const toolNameMax = 64 // bytes, as providers limit the names of tools

// toolName is the name of a tool, unless no tool can have it.
func toolName(name string) string {
	isOther := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.'
	}
	if len(name) > toolNameMax || strings.ContainsFunc(name, isOther) {
		return noToolName
	}
	return name
}

func hookWithoutContent(data any) any {
	switch d := data.(type) {
	case HookFired:
		if d.Text = ""; d.Failed != "" {
			d.Failed = "it gave no verdict"
		}
		return d
	case GuardrailFired:
		d.Why = ""
		return d
	case ScheduleMissed:
		d.Detail = ""
		return d
	case PermissionsChanged:
		d.Ask, d.Deny = nil, nil
		return d
	case ToolDecided:
		d.Why, d.Args, d.Rule, d.Digest = "", "", "", ""
		return d
	}
	return data
}

func resultWithoutContent(d Result) Result {
	d.Text, d.Journal, d.Detail = "", "", ""
	if d.Cancel != nil {
		c := *d.Cancel
		c.Why, d.Cancel = "", &c
	}
	agents := make([]AgentResult, len(d.Agents))
	for i, a := range d.Agents {
		if a.Query != nil {
			q := *a.Query
			q.Question, q.Rule, q.Digest = "", "", ""
			a.Query = &q
		}
		a.Detail = ""
		agents[i] = a
	}
	d.Agents = agents
	return d
}
