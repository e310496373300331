package event

// WithoutContent returns the data of an event without the texts of people, models and tools.
func WithoutContent(data any) any {
	switch d := data.(type) {
	case RunStarted:
		d.Goal = ""
		return d
	case Result:
		return resultWithoutContent(d)
	case AgentStarted:
		d.Goal = ""
		return d
	case AgentParked:
		d.Question, d.Rule = "", ""
		return d
	case QueryAnswered:
		d.Why = ""
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
	case ToolCall:
		d.Args, d.Text = "", ""
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
	}
	return hookWithoutContent(data)
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
	case ToolDecided:
		d.Why, d.Args, d.Rule = "", "", ""
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
			q.Question, q.Rule = "", ""
			a.Query = &q
		}
		agents[i] = a
	}
	d.Agents = agents
	return d
}
