package actors

import (
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// reopenClosed reactivates an actor whose log is closed, if a message of its run wants an answer
// from it.
func (r *router) reopenClosed(m mailbox.Message) {
	if _, gone := r.gone[m.To]; !gone {
		return
	}
	if activation.Reopens(m.To, m.Data) {
		delete(r.gone, m.To)
	}
}
