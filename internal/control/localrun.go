package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/workgroup"
	"github.com/troupe-run/troupe/internal/refuse"
)

// A program that embeds a node asks it in the same process: OpenRun and AwaitRun do what the verbs run
// and get do, without a server between. They serve only nodes that own all logs: on a shared server
// another node may be the one to open a run.

const (
	// localAtOnce is how many runs callers in this process open at once. Further callers wait, in the
	// order in which they came, and are never refused.
	localAtOnce = client.RequestsAtOnce
	// localTimeout bounds the opening of a run. It is longer than the limit of a request,
	// because no client times out here.
	localTimeout = time.Minute
	// lookAgainAfter is the pause before a caller looks again at a run that could not be looked at.
	lookAgainAfter = 2 * time.Second
)

// localRuns opens runs for callers in this process, and waits for their ends.
type localRuns struct {
	cfg    *Config
	work   *workgroup.Group
	owners *ownerCheck
	opener *opener
	viewer *viewer
	slots  chan struct{} // one for each run that is being opened
}

// OpenRun opens a run for a caller in this process. If ctx ends before the request has its turn, no run
// is opened; after that ctx is ignored.
func (c *localRuns) OpenRun(ctx context.Context, r *client.RunRequest) (client.RunAccepted, error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return client.RunAccepted{}, fmt.Errorf("control: the request waited for its turn: %w", context.Cause(ctx))
	case <-c.work.Ctx.Done():
		return client.RunAccepted{}, refuse.ErrClosing
	}
	type outcome struct {
		accepted client.RunAccepted
		err      error
	}
	done := make(chan outcome, 1)
	// It runs in a goroutine of its own, so that the stack of the waiting caller stays small.
	began := c.work.Start(func() {
		defer func() { <-c.slots }()
		accepted, err := c.openLocal(r)
		done <- outcome{accepted, err}
	})
	if !began {
		<-c.slots
		return client.RunAccepted{}, refuse.ErrClosing
	}
	o := <-done
	return o.accepted, o.err
}

// openLocal serves the verb run: the request passes the same masking and strict decoding as from a client.
func (c *localRuns) openLocal(r *client.RunRequest) (a client.RunAccepted, err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return a, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("the request does not encode: %v", err),
			Hint: "max_budget_usd and temperature must be finite numbers, and json_schema must be JSON"}
	}
	ctx, cancel := context.WithTimeout(c.work.Ctx, localTimeout)
	defer cancel()
	reply, err := c.work.CallRecovered(ctx, "run", handleJSON(c.owners, c.opener.openRun), c.cfg.Redact(data))
	if err != nil {
		return a, c.cfg.newRefusal("run", err)
	}
	return reply.(client.RunAccepted), nil
}

// AwaitRun waits until a run is over or waits for a person. A run that existed before the waiter was
// made is looked at immediately. Otherwise AwaitRun looks when it is woken, and again every lookAgainAfter while the
// logs of the run cannot be read.
func (c *localRuns) AwaitRun(ctx context.Context, w *runindex.Waiter, existed bool) (state client.RunState, result *event.Result, err error) {
	if !existed {
		err = c.awaitChange(ctx, w, 0)
	}
	for err == nil {
		var pause time.Duration
		state, result, err = c.readState(w)
		switch {
		case err == nil && state != client.RunLive && state != client.RunQueued && state != client.RunInterrupted:
			return state, result, nil
		case refuse.HasCode(err, client.CodeUnavailable) || refuse.HasCode(err, client.CodeLogs):
			pause = lookAgainAfter // the run continues when its logs can be read again
		case err != nil:
			return state, result, err
		}
		err = c.awaitChange(ctx, w, pause)
	}
	return state, nil, err
}

// readState returns the state of a run that is waited for, and its masked result.
func (c *localRuns) readState(w *runindex.Waiter) (state client.RunState, result *event.Result, err error) {
	if result = w.ArrivedResult(); result != nil {
		result, err = maskResult(c.cfg.Redact, *result)
		return client.RunFinished, result, err
	}
	info, err := c.getLocal(w.Run)
	return info.State, info.Result, err
}

// awaitChange waits until a run has changed, or for a pause if that is not 0.
func (c *localRuns) awaitChange(ctx context.Context, w *runindex.Waiter, pause time.Duration) error {
	var timeout <-chan time.Time
	if pause > 0 {
		timeout = time.After(pause)
	}
	select {
	case <-w.Changed:
		return nil
	case <-timeout:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("control: wait: %w", ctx.Err())
	case <-c.work.Ctx.Done():
		return refuse.ErrClosing
	}
}

// getLocal serves the verb get. Of the answer only the result is masked.
func (c *localRuns) getLocal(run string) (info client.RunInfo, err error) {
	ctx, cancel := context.WithTimeout(c.work.Ctx, bounds.RequestTimeout)
	defer cancel()
	reply, err := c.work.CallRecovered(ctx, "get", func(ctx context.Context, _ []byte) (any, error) {
		return c.viewer.getRun(ctx, client.GetRequest{RunID: run})
	}, nil)
	if err != nil {
		return info, c.cfg.newRefusal("get", err)
	}
	info = reply.(client.RunInfo)
	if info.Result != nil {
		info.Result, err = maskResult(c.cfg.Redact, *info.Result)
	}
	return info, err
}

// maskResult masks a result as the reply to a client is masked.
func maskResult(redact func([]byte) []byte, result event.Result) (*event.Result, error) {
	data, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("control: the result does not encode: %w", err)
	}
	masked := redact(data)
	if bytes.Equal(masked, data) {
		return &result, nil
	}
	var clean event.Result
	if err := json.Unmarshal(masked, &clean); err != nil {
		return nil, fmt.Errorf("control: the masked result does not decode: %w", err)
	}
	return &clean, nil
}
