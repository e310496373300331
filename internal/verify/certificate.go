package verify

import (
	"fmt"

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
