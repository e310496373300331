package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/lane"
)

// holderOf returns the agent, by its definition, to which a message goes that names none, because the conversation was
// handed off to it; "": the message goes to the default agent. A message that is sent while a run of the conversation
// works goes to the agent that has the conversation at that moment.
func (c *laneLogs) holderOf(ctx context.Context, r client.RunRequest) (string, error) {
	if r.Conversation == "" || r.Agent != "" {
		return "", nil
	}
	s, err := c.readLane(ctx, r.Conversation)
	if err != nil {
		return "", err
	}
	run := r.Conversation // that the conversation continues, if it has no run yet
	if len(s.Runs) > 0 {
		active, busy := s.ActiveRun()
		if !busy {
			return s.Holder, nil
		}
		run = active.ID
	}
	is, err := c.standingOf(ctx, run)
	switch {
	case err != nil:
		return "", err
	case is.Phase == lane.Missing, is.Holder == "" && is.Root == s.Holder, is.Holder == "" && is.Root == "":
		return s.Holder, nil
	}
	return is.Holder, nil
}

// explainHolder says why a request means an agent that its run does not have.
func explainHolder(err error, conversation, holder string) error {
	var refused *client.Error
	if holder == "" || !errors.As(err, &refused) || !strings.Contains(refused.Text, fmt.Sprintf("%q", holder)) {
		return err
	}
	return &client.Error{Code: refused.Code, Text: fmt.Sprintf("the conversation %s was handed off to %s: %s", conversation, holder, refused.Text),
		Hint: "name another agent (--agent), or the directory or files that define " + holder}
}
