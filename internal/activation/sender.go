package activation

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// activationOf is the sender's activation that a ReportLog or a StatusAsked names. Both are sent
// again after a crash like any message; only one that names an activation not seen before says
// how long the sender's log is now. (Epochs do not tell activations apart: a lease bucket that
// is created anew reuses them.)
func activationOf(item mailbox.Item) string {
	switch item.Kind {
	case agent.ReportLog{}.Kind():
		var f agent.ReportLog
		if mailbox.Unmarshal(item.Body, &f) == nil {
			return f.Activation
		}
	case agent.StatusAsked{}.Kind():
		var f agent.StatusAsked
		if mailbox.Unmarshal(item.Body, &f) == nil {
			return f.Activation
		}
	}
	return ""
}
