package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// backlogByMax bounds the name of who changes a backlog, in bytes.
const backlogByMax = 200

const backlogHint = "`troupe backlog RUN` shows the tasks; see docs/backlog.md"

// changeBacklog serves the verb backlog: it adds or drops a task of a live run, and returns the tasks.
func (c *commander) changeBacklog(ctx context.Context, r client.BacklogRequest) (any, error) {
	if !r.Changes() {
		if _, err := c.lookup.findRun(ctx, r.RunID); err != nil {
			return nil, err
		}
		return c.readBacklog(ctx, r)
	}
	switch {
	case len(r.By) > backlogByMax:
		return nil, badBacklog("by has %d bytes, at most %d are allowed", len(r.By), backlogByMax)
	case r.Drop != "" && (r.Title != "" || r.Text != ""):
		return nil, badBacklog("a request adds a task or drops one, and this one does both")
	}
	l, err := c.lookAtRun(ctx, r.RunID, r.Request)
	if err != nil {
		return nil, err
	}
	full, err := c.states.Replay(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return nil, err
	}
	if err := checkRequestsLeft(mailbox.At(r.RunID, mailbox.Super), full.Requests); err != nil {
		return nil, err
	}
	f := supervisor.BacklogSet{Request: r.Request, Title: r.Title, Text: r.Text, Drop: r.Drop, By: namedBy(r.By)}
	if repeated := supervisor.TaskOfRequest(full.State, r.Request) != ""; !repeated && l.State() != client.RunFinished {
		if why := supervisor.CheckBacklog(full.State, f); why != "" {
			return nil, badBacklog("%s", why)
		}
	}
	if _, err := c.appendToViewed(ctx, l, r.Request, "", "", f.Kind(), f); err != nil {
		return nil, err
	}
	return c.readBacklog(ctx, r)
}

// readBacklog returns the tasks of a run as its log has them. A request that was to add a task has added it, unless
// what came before it in the log has changed what is possible.
func (c *commander) readBacklog(ctx context.Context, r client.BacklogRequest) (any, error) {
	full, err := c.states.Replay(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return nil, err
	}
	b := client.Backlog{Tasks: supervisor.BacklogOf(full.State, c.cfg.Now().UnixMilli())}
	if r.Title != "" {
		if b.Posted = supervisor.TaskOfRequest(full.State, r.Request); b.Posted == "" {
			return nil, &client.Error{Code: client.CodeConflict, Text: "the task was not added: the run changed while it was asked", Hint: backlogHint}
		}
	}
	if r.Task == "" {
		for i := range b.Tasks {
			b.Tasks[i].Text, b.Tasks[i].Result = "", ""
		}
		return b, nil
	}
	if b.Tasks = slices.DeleteFunc(b.Tasks, func(t event.BacklogTask) bool { return t.Task != r.Task }); len(b.Tasks) == 0 {
		return nil, &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no task %.32q in the backlog of %s", r.Task, r.RunID), Hint: backlogHint}
	}
	return b, nil
}

// countTasks counts the tasks of a run by their state; nil if it has none.
func countTasks(s supervisor.State, now int64) (counts map[string]int) {
	for _, t := range supervisor.BacklogOf(s, now) {
		if counts == nil {
			counts = map[string]int{}
		}
		counts[t.State]++
	}
	return counts
}

func badBacklog(format string, args ...any) error {
	return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf(format, args...), Hint: backlogHint}
}
