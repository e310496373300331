package agent

import (
	"fmt"

	"github.com/troupe-run/troupe/model"
)

// Data of notes about attempts that failed and what took their place.
type (
	// Fallback is model.fallback.
	Fallback struct {
		From  string `json:"from"`
		To    string `json:"to"`
		Error string `json:"error"`
	}
	// GatePaused is gate.paused: the model refuses everybody, and the agent waits
	// for its turn without a lease.
	GatePaused struct {
		Model   string  `json:"model"`
		Purpose Purpose `json:"purpose,omitempty"`
		Why     string  `json:"why"`
		AfterMS int64   `json:"after_ms,omitempty"` // what was asked for
		Refused int     `json:"refused"`            // times since it last answered
		LeftMS  int64   `json:"left_ms"`            // of the agent's patience
	}
	// ToolRetry is tool.retry: an attempt failed in passing, the call runs again.
	ToolRetry struct {
		Call    string      `json:"call"`
		Tool    string      `json:"tool"`
		Class   model.Class `json:"class"`
		Attempt int         `json:"attempt"`        // that failed
		Text    string      `json:"text,omitempty"` // of its failure
		TookMS  int64       `json:"took_ms"`
		WaitMS  int64       `json:"wait_ms"` // until the next attempt
		Left    int         `json:"left"`    // attempts that may follow
	}
)

// unanswered tells of an attempt without an answer, and of the wait at the gate.
func (n *notes) unanswered(before State, f Failed, after State) {
	if before.Phase != Thinking || f.Lease != before.Lease {
		return
	}
	n.turn = before.Turn + 1
	kind := "error.raised"
	if after.Phase == Waiting {
		kind = "model.retry"
	}
	u := f.Reply.Usage
	n.add(kind, ModelFinished{Model: before.calling(), Purpose: before.Purpose, Usage: u, UsageKnown: f.Reply.UsageKnown,
		TookMS: f.TookMS, Error: f.Class, Detail: f.Detail})
	if after.Pause.Waiting {
		n.add("gate.paused", GatePaused{Model: before.calling(), Purpose: before.Purpose, Why: after.Pause.Why, AfterMS: f.AfterMS,
			Refused: after.Pause.Refused, LeftMS: after.impatientAt() - after.Now})
	}
}

// retries tells of models that were replaced and of calls that run again.
func (n *notes) retries(before State, e Event, after State) {
	if after.Route != before.Route {
		n.add("model.fallback", Fallback{From: before.route().Name, To: after.route().Name, Error: whyReplaced(before, e.Fact)})
	}
	if _, denied := e.Fact.(Denied); denied && after.Route != before.Route {
		n.add("warning.raised", Warned{What: "a fallback model was skipped", Why: whyReplaced(before, e.Fact)})
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
	n.add("tool.retry", ToolRetry{Call: c.ID, Tool: c.Name, Class: c.Class, Attempt: f.Attempt, Text: f.Text, TookMS: f.TookMS,
		WaitMS: c.Due - after.Now, Left: min(after.Task.Manners.ToolRetries, ToolRetriesMax) - c.Tries + 1})
}

func (s State) tries(call string) int {
	if i := s.call(call); i >= 0 {
		return s.Calls[i].Tries
	}
	return 0
}

// whyReplaced is what speaks against the model that was in use.
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
