package agent

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// unanswered notes an attempt without an answer, and the wait for the throttle.
func (n *notes) unanswered(before State, f Failed, after State) {
	if before.Phase != Thinking || f.Lease != before.Lease {
		return
	}
	n.turn = before.Turn + 1
	kind := event.KindErrorRaised
	if after.Phase == Waiting {
		kind = event.KindModelRetry
	}
	u := f.Reply.Usage
	n.add(kind, event.ModelFinished{Model: before.calling(), Purpose: string(before.Purpose), Usage: u, UsageKnown: f.Reply.UsageKnown,
		TookMS: f.TookMS, Error: f.Class, Detail: f.Detail})
	if after.Pause.Waiting {
		n.add(event.KindGatePaused, event.GatePaused{Model: before.calling(), Purpose: string(before.Purpose), Why: after.Pause.Why, AfterMS: f.AfterMS,
			Refused: after.Pause.Refused, LeftMS: after.impatientAt() - after.Now})
	}
}

// retries notes models that were replaced and calls that run again.
func (n *notes) retries(before State, e Event, after State) {
	if after.Route != before.Route {
		n.add(event.KindModelFallback, event.Fallback{From: before.route().Name, To: after.route().Name, Error: whyReplaced(before, e.Fact)})
	}
	if _, denied := e.Fact.(Denied); denied && after.Route != before.Route {
		n.add(event.KindWarningRaised, event.Warning{What: "a fallback model was skipped", Why: whyReplaced(before, e.Fact)})
	}
	f, ok := e.Fact.(Returned)
	if !ok || len(after.Calls) == 0 {
		return
	}
	i := after.call(f.Call)
	if i < 0 || after.Calls[i].Tries == before.tries(f.Call) {
		return
	}
	c := after.Calls[i]
	n.add(event.KindToolRetry, event.ToolRetry{Call: c.ID, Tool: c.Name, Class: c.Class, Attempt: f.Attempt, Text: f.Text, TookMS: f.TookMS,
		WaitMS: c.Due - after.Now, Left: min(after.Task.LoopOptions.ToolRetries, spec.ToolRetriesMax) - c.Tries + 1})
}

func (s State) tries(call string) int {
	if i := s.call(call); i >= 0 {
		return s.Calls[i].Tries
	}
	return 0
}

// whyReplaced is the reason why the previous model was replaced.
func whyReplaced(before State, f Fact) string {
	switch f := f.(type) {
	case Barred:
		return f.Why
	case Woke:
		return before.Pause.Why
	case Failed:
		return fmt.Sprintf("%s: %s", f.Class, f.Detail)
	case Denied:
		return fmt.Sprintf("skipped: the run has a limit in money, and the price of %s is not known", before.route().Name)
	}
	return ""
}
