package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/mailbox"
)

// A history is uploaded into the log of a root before its run is opened, when the run has no owner yet. The ids of the
// uploaded items say who sent them, so that nobody begins the run of another with a history, or removes one.

// partPrefix begins the id of an item that is a part of a history.
const partPrefix = "past-"

// partSender returns who has sent an entry that is a part of a history; "": an operator. ok is false for other entries.
func partSender(e mailbox.Entry) (owner string, ok bool) {
	if len(e.Items) != 1 || e.From != "" {
		return "", false
	}
	_, owner, _ = strings.Cut(e.Items[0].ID, ".")
	return owner, e.Items[0].Kind == agent.Recalled{}.Kind() && strings.HasPrefix(e.Items[0].ID, partPrefix)
}

// checkUploads refuses a new run if the log of its root has entries that are no part of the request: the agent would
// begin with the history in them.
func (c *opener) checkUploads(ctx context.Context, r client.RunRequest, root mailbox.Address) error {
	named := r.Fork != "" || r.History != nil
	foreign := false
	for _, at := range slices.Compact([]mailbox.Address{root.Bare(), root}) {
		err := c.cfg.Post.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
			e, err := mailbox.Decode(m.Data)
			by, isPart := partSender(e)
			isOwn := e.From == at && len(e.Items) > 0 && e.Items[0].Kind != agent.Closed{}.Kind() // an upload begins an activation
			if err == nil && named && (isOwn || isPart && by == requestOwner(ctx)) {
				return nil
			}
			foreign = true
			return runlog.ErrEnough
		})
		if err != nil && !errors.Is(err, runlog.ErrEnough) {
			return fmt.Errorf("control: read %s: %w", at, err)
		}
	}
	if !foreign {
		return nil
	}
	if _, opened, err := c.owners.ownerOf(ctx, r.RunID); err != nil || opened { // the entries are those of the run
		return err
	}
	return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("a history was sent to the id %s that this request does not name", r.RunID),
		Hint: "choose another run_id"}
}

// checkUnopenedLogs checks the logs of a run that was never opened before they are removed. isUpload reports whether they
// only have what a client sent ahead: then no actor sends to the supervisor, and its log needs no tombstone, with which
// the id would count as that of a run that ended.
func checkUnopenedLogs(ctx context.Context, run string, logs map[mailbox.Address]*logStatus) (isUpload bool, err error) {
	owner := requestOwner(ctx)
	isUpload = true
	for _, e := range logs {
		isUpload = isUpload && (e.reader.Deleted || !e.hasOther)
		own := len(e.senders) == 1 && e.senders[owner] && !e.hasOther
		if owner != "" && !e.reader.Deleted && !own {
			return false, notOwner("history that was sent to", run, owner)
		}
	}
	return isUpload, nil
}
