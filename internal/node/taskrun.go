package node

import (
	"context"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/control/runindex"
)

// TaskRun is a run that the program which embeds the node has opened and waits for. A node that owns its logs does
// both in this process. On a shared server another node may open the run and end it, so the requests
// go through the server.
type TaskRun struct {
	control *control.Control
	local   *runindex.Waiter // nil: on a shared server
	watch   *client.RunWatch
	id      string
	existed bool
}

// OpenTaskRun opens a run, or finds the one that exists. The caller must Close it. On a shared server the request
// does not end with ctx: a run that is accepted after the caller's context ended must be canceled, and until it is
// accepted there is nothing to cancel.
func (n *Node) OpenTaskRun(ctx context.Context, ask *client.Client, r *client.RunRequest) (t *TaskRun, err error) {
	t = &TaskRun{control: n.control, id: r.RunID}
	// The wait begins before the run: it may end at once.
	var accepted client.RunAccepted
	if n.embedded != nil {
		t.local = n.runs.Ends.NewWaiter(r.RunID)
		accepted, err = n.control.OpenRun(ctx, r)
	} else if t.watch, err = ask.NewRunWatch(r.RunID); err == nil {
		accepted, err = ask.Run(context.WithoutCancel(ctx), *r)
	} else {
		return nil, err
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	t.existed = accepted.Existed
	return t, nil
}

// ID is the id of the run.
func (t *TaskRun) ID() string { return t.id }

// Close ends the wait.
func (t *TaskRun) Close() {
	if t.local != nil {
		t.local.Close()
		return
	}
	t.watch.Close()
}

// Wait waits until the run is over or parked, and returns its state, and its result if it has one.
func (t *TaskRun) Wait(ctx context.Context) (state client.RunState, result *event.Result, err error) {
	if t.local != nil {
		return t.control.AwaitRun(ctx, t.local, t.existed)
	}
	return t.waitByServer(ctx)
}

//go:noinline
func (t *TaskRun) waitByServer(ctx context.Context) (state client.RunState, result *event.Result, err error) {
	wait := t.watch.WaitNew
	if t.existed {
		wait = t.watch.Wait
	}
	info, err := wait(ctx)
	return info.State, info.Result, err
}
