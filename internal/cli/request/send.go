package request

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/node"
)

// Send requests a run, after it has sent the history that the run begins with.
func (flags *Flags) Send(s *session.Session, stateDir string) (client.RunAccepted, error) {
	if err := flags.ResolveConversation(s); err != nil {
		return client.RunAccepted{}, err
	}
	if err := flags.resolveAgent(s); err != nil {
		return client.RunAccepted{}, err
	}
	r := flags.Request
	if origin, turn, at := strings.Cut(r.Fork, "@"); origin != "" {
		run, err := s.FindRun(s.Context, origin)
		if err != nil {
			return client.RunAccepted{}, err
		}
		if r.Fork = run; at {
			r.Fork += "@" + turn
		}
	}
	if flags.imported != nil {
		h, err := s.Recall(s.Context, r.RunID, *flags.imported)
		if err != nil {
			return client.RunAccepted{}, err
		}
		r.History = &h
	}
	for _, f := range flags.attachments {
		sent, err := s.Attach(s.Context, r.RunID, f.name, f.mime, f.data)
		if err != nil {
			return client.RunAccepted{}, withdraw(s, r.RunID, err)
		}
		r.Attach = append(r.Attach, sent)
	}
	// The user has named these files explicitly: a node of the same state directory
	// may use their current content.
	if err := node.ApproveRequest(node.Config{StateDir: stateDir}, r); err != nil {
		return client.RunAccepted{}, err
	}
	// The node of another command of this user has the roots of that command. The record also proves that
	// the user sends the request.
	if s.OwnerPID > 0 || s.Node != nil {
		if err := node.BringPlaces(node.Config{StateDir: stateDir}, r); err != nil {
			return client.RunAccepted{}, err
		}
	}
	if err := s.Context.Err(); err != nil { // interrupted: the request is not sent
		return client.RunAccepted{}, err
	}
	accepted, err := s.Run(s.Context, r)
	if sent := flags.imported != nil || len(r.Attach) > 0; sent && isRefusal(err) {
		err = withdraw(s, r.RunID, err)
	}
	if !isRefusal(err) && !accepted.Existed {
		flags.Copy = "" // the run uses it, or may use it: there was no answer
	}
	return accepted, err
}

// isRefusal reports whether the node rejected the request. Without an answer the run may exist.
func isRefusal(err error) bool {
	var known *client.Error
	return errors.As(err, &known) && known.Code != client.CodeInternal && known.Code != client.CodeUnavailable
}

// withdrawTimeout bounds the attempt to withdraw an imported history.
const withdrawTimeout = 10 * time.Second

// withdraw withdraws the history that was sent before a run that is not created. A run that
// exists keeps its history.
func withdraw(s *session.Session, run string, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context), withdrawTimeout)
	defer cancel()
	err := s.Withdraw(ctx, run)
	if known := (*client.Error)(nil); err == nil || errors.As(err, &known) && known.Code == client.CodeConflict {
		return why
	}
	left := fmt.Sprintf("; the parts sent before it stay in the store: %v", err)
	if known := (*client.Error)(nil); errors.As(why, &known) { // a client.Error shows only its own text
		return &client.Error{Code: known.Code, Text: known.Text + left, Hint: known.Hint}
	}
	return fmt.Errorf("%w%s", why, left)
}
