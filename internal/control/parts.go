package control

import (
	"context"
	"sync"

	"github.com/troupe-run/troupe/client"
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
}

type viewer struct{ *lookup }

// newOpener makes the parts that change runs.
func newOpener(cfg *Config) *opener {
	removes := &remover{&canceler{&commander{&lookup{cfg}}}, &runLocks{}}
	return &opener{laneKeeper: &laneKeeper{removes, client.NewID()}}
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
