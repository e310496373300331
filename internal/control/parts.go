package control

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// The verbs are divided by their effect on a run. Each part has the methods of the
// parts below it:
//
//	lookup     finds runs by the index and by their logs, and replays logs
//	commander  appends what clients ask for: steering, answers, budget, policy
//	canceler   stops agents, through the supervisor or without it
//	remover    deletes runs that have ended, and prunes
//	laneKeeper orders the runs of a conversation
//	opener     opens runs, also from a history, and keeps attachments
//	viewer     lists and shows; on lookup alone

type lookup struct{ cfg *Config }

type commander struct{ *lookup }

type canceler struct{ *commander }

type remover struct {
	*canceler
	locks *runLocks
}

type opener struct {
	*laneKeeper
	room storeRoom
	// opening has a slot for each run that is opened now; nil: other nodes open runs on the same logs, too.
	opening chan struct{}
}

// opensPerProcessor is how many runs a node that owns all logs opens at once, for each processor. A run that is open
// goes on before others are opened, so that short runs end one after the other and are not all in memory.
const opensPerProcessor = 2

type viewer struct {
	*lookup
	pages     *eventPages
	states    superStates
	lostCalls questionCache[string] // the texts of calls whose outcome is unknown
	contexts  questionCache[questionContext]
}

// newOpener makes the parts that change runs.
func newOpener(cfg *Config) *opener {
	removes := &remover{&canceler{&commander{&lookup{cfg}}}, &runLocks{}}
	c := &opener{laneKeeper: &laneKeeper{removes, client.NewID()}}
	if cfg.Cluster == nil {
		c.opening = make(chan struct{}, opensPerProcessor*runtime.GOMAXPROCS(0))
	}
	return c
}

// appendOpened appends the first entry of a run.
func (c *opener) appendOpened(ctx context.Context, o supervisor.Opened) error {
	if c.opening != nil {
		select {
		case c.opening <- struct{}{}:
			defer func() { <-c.opening }()
		case <-ctx.Done():
			return fmt.Errorf("control: run %s was not opened: %w", o.Run, context.Cause(ctx))
		}
	}
	return c.cfg.Node.Open(ctx, o)
}

// runLocks are the runs that are being opened with a history, or deleted.
type runLocks struct {
	mu     sync.Mutex
	locked map[string]chan struct{}
}

// lockRun lets one request at a time open a run that begins with a history, or delete it: the
// parts of two requests must not mix. A client that gets no reply retries, so the second
// request waits for the first.
func (o *runLocks) lockRun(ctx context.Context, run string) (done func(), err error) {
	for {
		o.mu.Lock()
		busy := o.locked[run]
		if busy == nil {
			break
		}
		o.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer o.mu.Unlock()
	if o.locked == nil {
		o.locked = map[string]chan struct{}{}
	}
	over := make(chan struct{})
	o.locked[run] = over
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.locked, run)
		close(over)
	}, nil
}
