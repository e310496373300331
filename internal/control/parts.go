package control

import (
	"context"
	"sync"
)

// The verbs are divided by their effect on a run. Each part has the methods of the
// parts below it:
//
//	lookup     finds runs by the index and by their logs, and replays logs
//	commander  appends what clients ask for: steering, answers, budget, policy
//	canceler   stops agents, through the supervisor or without it
//	remover    deletes runs that have ended, and prunes
//	opener     opens runs, also from a history, and keeps attachments
//	viewer     lists and shows; on lookup alone

type lookup struct{ cfg *Config }

type commander struct{ *lookup }

type canceler struct{ *commander }

type remover struct {
	*canceler
	opening *openings
}

type opener struct{ *remover }

type viewer struct{ *lookup }

// newOpener makes the parts that change runs.
func newOpener(cfg *Config) *opener {
	return &opener{&remover{&canceler{&commander{&lookup{cfg}}}, &openings{}}}
}

// openings are the runs that are being opened with a history, or deleted.
type openings struct {
	mu sync.Mutex
	of map[string]chan struct{}
}

// only lets one request at a time open a run that begins with a history, or delete it: the
// parts of two requests must not mix. A client that gets no reply retries, so the second
// request waits for the first.
func (o *openings) only(ctx context.Context, run string) (done func(), err error) {
	for {
		o.mu.Lock()
		busy := o.of[run]
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
	if o.of == nil {
		o.of = map[string]chan struct{}{}
	}
	over := make(chan struct{})
	o.of[run] = over
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.of, run)
		close(over)
	}, nil
}
