package term

import (
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// PlainLine formats one event for the log of one run: the event and the agent.
func PlainLine(s Style, e client.Event, name string) string {
	who := CleanLine(name)
	if who == "" || e.Agent == "super" {
		who = "run"
	}
	return strings.TrimRight(s.Dim(timeOfDay(e.TS))+" "+s.Cyan(who)+"  "+s.colorKind(e.Kind, CleanLine(e.Kind))+"  "+Truncate(followDetail(e), detailColumns), " ")
}

// questionLinesShown is how many lines of a long question the line of its event shows. The rest is
// shown when the run waits.
const questionLinesShown = 2

// followDetail is EventDetail with the beginning of a long question.
func followDetail(e client.Event) string {
	d, ok := decodeData[event.AgentParked](e)
	lines := strings.Split(strings.TrimSpace(d.Question), "\n")
	if e.Kind != event.KindQueryAsked || !ok || len(lines) <= 2*questionLinesShown {
		return EventDetail(e)
	}
	return CleanLine(clipText(d.Query + "  " + QuestionLine(strings.Join(lines[:questionLinesShown], "\n")) + " ⏎ …"))
}
