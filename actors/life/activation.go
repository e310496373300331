package life

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// activation is the life of its sender that a Back or a StatusAsked speaks of. Both are
// sent again after a crash like any letter; only one of a life not heard of before says
// how long the sender's log is now. (Epochs do not tell lives apart: a lease bucket that
// is made anew uses them again.)
func activation(item mailbox.Item) string {
	switch item.Kind {
	case agent.Back{}.Kind():
		var f agent.Back
		if mailbox.Unmarshal(item.Body, &f) == nil {
			return f.Life
		}
	case agent.StatusAsked{}.Kind():
		var f agent.StatusAsked
		if mailbox.Unmarshal(item.Body, &f) == nil {
			return f.Life
		}
	}
	return ""
}
