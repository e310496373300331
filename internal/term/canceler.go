package term

import (
	"strings"

	"github.com/troupe-run/troupe/agent/event"
)

// cancelers are who canceled an agent and those below it, by its id; "" is the run.
type cancelers map[string]string

// with adds a cancel. One of the run replaces all before it: the newest cancel of an agent counts.
func (c cancelers) with(w event.Warning) cancelers {
	if w.Agent == "" || c == nil {
		return cancelers{w.Agent: w.By}
	}
	c[w.Agent] = w.By
	return c
}

// endingOf is the detail of the end of an agent, with the name of the person who canceled it, an agent above it, or
// the run.
func (c cancelers) endingOf(m *member, agents map[string]*member, detail string) string {
	by, isNamed := c[m.id]
	for depth := 0; !isNamed && agents[m.parent] != nil && depth < len(agents); depth++ {
		m = agents[m.parent]
		by, isNamed = c[m.id]
	}
	if !isNamed {
		by = c[""]
	}
	return event.Result{Detail: detail, Cancel: &event.CancelResult{By: by}}.Ending()
}

// endText says how an agent ended that did not complete its task.
func (m *member) endText() string {
	text := FormatReason(m.reason)
	by, isCancel := strings.CutPrefix(m.detail, "canceled by ")
	switch {
	case isCancel && strings.HasPrefix(text, "canceled"):
		return text + " by " + CleanLine(by)
	case m.detail != "":
		return text + ": " + CleanLine(m.detail)
	}
	return text
}
