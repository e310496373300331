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
	case Failed:
		return fmt.Sprintf("%s: %s", f.Class, f.Detail)
	case Denied:
		return fmt.Sprintf("skipped: the run has a limit in money, and the price of %s is not known", before.route().Name)
	}
	return ""
}
