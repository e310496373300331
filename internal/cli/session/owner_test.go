package session

import (
	"context"
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// A command asks the next owner only if the one before has ended: one that answers would give the same answer at once, again
// and again.
func TestAnOwnerThatAnswersIsNotGone(t *testing.T) {
	t.Parallel()
	lost, end := context.WithCancelCause(t.Context())
	end(errNodeGone)
	unavailable := &client.Error{Code: client.CodeUnavailable, Text: "its logs cannot be read"}
	for name, c := range map[string]struct {
		session *Session
		err     error
		want    bool
	}{
		"nobody answers":            {&Session{OwnerPID: 1, Context: t.Context()}, fmt.Errorf("get: %w", client.ErrUnavailable), true},
		"the connection has ended":  {&Session{OwnerPID: 1, Context: lost}, context.Canceled, true},
		"it answers with an error":  {&Session{OwnerPID: 1, Context: t.Context()}, fmt.Errorf("get: %w", unavailable), false},
		"it answers":                {&Session{OwnerPID: 1, Context: t.Context()}, nil, false},
		"a server that is not ours": {&Session{Context: t.Context()}, client.ErrUnavailable, false},
		"the user ends the command": {&Session{OwnerPID: 1, Context: t.Context()}, context.Canceled, false},
	} {
		if got := c.session.isOwnerGone(c.err); got != c.want {
			t.Errorf("%s: gone %v, want %v", name, got, c.want)
		}
	}
}
