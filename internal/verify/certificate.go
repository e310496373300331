package verify

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// certify says how the run came to its stop.
func (v *verifier) certify(super *log) {
	c := &v.report.Certificate
	add := func(format string, args ...any) { c.Facts = append(c.Facts, fmt.Sprintf(format, args...)) }
	if super.canceled > 0 {
		add("a cancel is entry %d of %s%s", super.canceled, super.at, why(super.cancel.Why))
	}
	for _, m := range super.inbox {
		if m.from.Agent() != "root" {
			continue
		}
		item := mailbox.Item{Kind: m.kind, Body: m.body}
		switch m.kind {
		case "propose_stop":
			var b proposalBody
			if mailbox.Unmarshal(item.Body, &b) == nil {
				add("root proposed stop %d in its entry %d (entry %d of %s)", b.Proposal, m.n, m.entry, super.at)
			}
		case "finish":
			var b finishBody
			if mailbox.Unmarshal(item.Body, &b) == nil {
				c.Reason = b.Outcome.Reason
				add("root ended as %s after %d turns and %d calls (entry %d of %s)%s", b.Outcome.Reason, b.Turns, b.Calls, m.entry, super.at, why(b.Outcome.Detail))
			}
		}
	}
	if root := v.logs[mailbox.At(super.at.Run(), "root")]; root != nil {
		for _, m := range root.inbox {
			if m.kind == "stop_allowed" || m.kind == "stop_vetoed" {
				add("the supervisor answered %s (entry %d of %s)", m.kind, m.entry, root.at)
			}
		}
	}
	if super.closed > 0 {
		add("the log of the run is closed (entry %d of %s)", super.closed, super.at)
	}
}

func why(text string) string {
	const whyBytes = 200
	if len(text) > whyBytes {
		text = text[:whyBytes] + "…"
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf(": %q", text)
}

// checkTold checks that the logs show what is told of the run.
func (v *verifier) checkTold(super *log, told Told) {
	reason := v.report.Certificate.Reason
	switch {
	case told.State == "finished" && super.closed == 0:
		super.find(Ended, super.n, "the run is told to have finished, and its log has no end: its last entries are missing, or its supervisor was given up before it wrote them")
	case told.Reason != "" && reason != told.Reason:
		super.find(Ended, super.n, "the run is told to have stopped as %s, and the logs show %q", told.Reason, reason)
	case told.State == "parked" && len(v.openQuestions(super)) == 0:
		super.find(Ended, super.n, "the run is told to wait for a person, and no question is open: the entries that asked it are missing, or others follow")
	}
}

// openQuestions returns the questions that no agent has withdrawn, in the order in which they were asked.
func (v *verifier) openQuestions(super *log) (open []question) {
	for _, m := range super.inbox {
		switch m.kind {
		case "park":
			var b parkBody
			if mailbox.Unmarshal(m.body, &b) == nil {
				open = append(open, question{m.entry, m.n, m.from, b})
			}
		case "unpark":
			var b parkBody
			if mailbox.Unmarshal(m.body, &b) == nil {
				open = slices.DeleteFunc(open, func(q question) bool { return q.from == m.from && q.body.Query == b.Query })
			}
		case "finish":
			open = slices.DeleteFunc(open, func(q question) bool { return q.from == m.from })
		}
	}
	return open
}
