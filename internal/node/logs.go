package node

import (
	"context"

	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/mailbox"
)

// logs returns the logs for writers: appends redact known secrets.
func (h *Node) logs() redact.Store { return redact.Store{Store: h.post, Mask: h.mask} }

// still is a log store whose entries wake no actor.
type still struct{ redact.Store }

func (still) Tail(context.Context, func(mailbox.Message)) (stop func(), err error) {
	return func() {}, nil
}
