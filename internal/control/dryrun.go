package control

import (
	"context"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/schedules"
	"github.com/troupe-run/troupe/supervisor"
)

// previewRun answers a request with dry_run: it builds the run as openRun does, with the same refusals, and stores nothing.
// The order in a conversation, and the room of the server, are looked at when the run is opened.
func (c *opener) previewRun(ctx context.Context, r client.RunRequest) (any, error) {
	if _, taken, err := c.lookup.findTaken(ctx, r.RunID); err != nil {
		return nil, err
	} else if taken {
		return nil, errRunExists(r.RunID, "troupe describe "+r.RunID+" shows what it was opened with")
	}
	meant, err := c.resolveRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	opened, accepted, err := c.buildFirstEntry(ctx, meant, r.Conversation)
	if err != nil {
		return nil, err
	}
	preview := previewOpened(opened)
	accepted.Conversation, accepted.Preview = meant.Conversation, &preview
	return accepted, nil
}

// checkPreview refuses of a request with dry_run what a dry run cannot answer without a write, or has nothing to say about.
func checkPreview(r client.RunRequest) error {
	var what string
	switch {
	case !r.DryRun:
		return nil
	case !schedules.TimesOf(r).IsEmpty():
		what = "a schedule"
	case r.Resume:
		what = "a run that is resumed"
	case r.Fork != "":
		what = "a fork"
	case r.History != nil || len(r.Attach) > 0:
		what = "a run with a history or attachments, which are stored before it"
	default:
		return nil
	}
	return &client.Error{Code: client.CodeBad, Text: "dry_run is not possible for " + what, Hint: "leave dry_run out, or ask about a new run"}
}

// previewOpened describes a run that has not been opened: what it would be opened with, and the root agent as it would begin.
func previewOpened(o supervisor.Opened) client.Preview {
	o.InLane = false // it begins at once here, so that its agent is described
	s, out := supervisor.Step(supervisor.State{}, supervisor.Input{Fact: o})
	preview := client.Preview{Description: describeRun(s), StopReason: s.Outcome.Reason, Detail: s.Outcome.Detail}
	for _, effect := range out.Effects {
		if tell, ok := effect.(supervisor.Tell); ok {
			if task, ok := tell.Fact.(agent.Submitted); ok {
				preview.RootTurns = task.Task.Limits.WithDefaults(0).Turns
			}
		}
	}
	return preview
}
