package runlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// superEntriesMin is how many entries the log of a supervisor must have for its state to be kept: a shorter one is
	// replayed in less time than it is worth.
	superEntriesMin = 1000
	// superStatesMax is how many states a node keeps, superBytesMax how many bytes the logs of all but the newest of them
	// have together: a state takes some four times the memory of its log. It does not count states of logs that were not
	// read to their end, of which it keeps longReplaysMax: if two such runs removed what was read of each other, neither
	// would ever be read.
	superStatesMax = 16
	superBytesMax  = 32 << 20
	// superAge is how long a state is kept without a request for it.
	superAge = time.Minute
	// longReplaysMax is how many requests replay more than superEntriesMin entries at once. The state of a run of 10,000
	// agents takes 100 MB, so the number of requests must not decide how many are made at once.
	longReplaysMax = 4
)

// SupervisorStates replays the logs of supervisors for requests. Requests for one run take turns with one state, so that a
// log is replayed once however many ask. The states of long logs are kept between requests, and the next request reads
// only what has been appended since. That holds, too, for a request whose time has ended before the log has: what it has
// read is not read again.
type SupervisorStates struct {
	long chan struct{} // holds a value for each long replay

	mu    sync.Mutex
	list  []*superState // the one that was used last is the last
	turns map[string]*superTurn
}

// NewSupervisorStates keeps no states yet.
func NewSupervisorStates() *SupervisorStates {
	return &SupervisorStates{long: make(chan struct{}, longReplaysMax), turns: map[string]*superTurn{}}
}

// superTurn is the turn of the requests for one run.
type superTurn struct {
	token    chan struct{} // holds a value while a request uses the state
	requests int           // that use the state or wait for it
	state    *superState   // of the last request; nil: none
}

// superState is the state of a supervisor up to an entry of its log.
type superState struct {
	run     string
	reader  *activation.LogReader
	machine *activation.Supervisor
	place   uint64 // of the entry
	entries int
	bytes   int
	used    time.Time
	// unfinished says that the time of a request ended before the log did.
	unfinished bool
}

// Replay returns what the log of a run's supervisor says. It returns ErrReplaying if that takes longer than the
// request: then the next one goes on.
func (s *SupervisorStates) Replay(ctx context.Context, post mailbox.Store, run string) (r SupervisorReplay, err error) {
	wait := ctx
	if until, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		wait, stop = context.WithDeadline(ctx, until.Add(-bounds.ReplyReserve))
		defer stop()
	}
	t, err := s.take(wait, run)
	if err != nil {
		return r, err
	}
	k := t.state
	t.state = nil // also after a panic: the state may have read a part of an entry
	defer s.release(t, run)
	if k == nil {
		k = newSuperState(run)
	}
	found, err := s.readOn(wait, post, k)
	if err == nil && !found { // the log was replaced
		k = newSuperState(run)
		_, err = s.readOn(wait, post, k)
	}
	if k.unfinished = isOutOfTime(err); err == nil || k.unfinished {
		t.state = k
	}
	if k.unfinished && !errors.Is(ctx.Err(), context.Canceled) {
		err = refuse.ErrReplaying
	}
	if err != nil {
		return r, err
	}
	return SupervisorReplay{State: k.machine.State, Damage: k.reader.Damage, Place: k.place, Requests: k.reader.Requests()}, nil
}

// isOutOfTime reports whether a replay has ended between two entries because its request has no more time.
func isOutOfTime(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func newSuperState(run string) *superState {
	at := mailbox.At(run, mailbox.Super)
	m := &activation.Supervisor{Addr: at}
	return &superState{run: run, machine: m, reader: activation.Watch(at, m)}
}

// readOn replays what follows. found: the log still holds the entry up to which it was replayed.
func (s *SupervisorStates) readOn(ctx context.Context, post mailbox.Store, k *superState) (found bool, err error) {
	found = k.place == 0
	read := 0
	defer func() {
		if read >= superEntriesMin {
			<-s.long
		}
	}()
	err = post.Read(ctx, k.reader.Addr, max(k.place, 1)-1, 0, func(m mailbox.Message) error {
		if !found {
			if found = m.Place == k.place; !found {
				return ErrEnough
			}
			return nil
		}
		if read+1 == superEntriesMin {
			select {
			case s.long <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		read++
		if r := k.reader.Next(m); errors.Is(r.Err, mailbox.ErrForm) {
			return refuse.NewerLog(k.reader.Addr)
		}
		k.place, k.entries, k.bytes = m.Place, k.entries+1, k.bytes+len(m.Data)
		return nil
	})
	if err != nil && !errors.Is(err, ErrEnough) {
		return found, fmt.Errorf("control: read %s: %w", k.reader.Addr, err)
	}
	return found, nil
}

// take waits until the request alone uses the state of a run.
func (s *SupervisorStates) take(ctx context.Context, run string) (*superTurn, error) {
	s.mu.Lock()
	t := s.turns[run]
	if t == nil {
		t = &superTurn{token: make(chan struct{}, 1)}
		s.turns[run] = t
	}
	t.requests++
	s.mu.Unlock()
	select {
	case t.token <- struct{}{}:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leave(t, run)
		return nil, refuse.ErrReplaying
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.list, func(k *superState) bool { return k.run == run }); t.state == nil && i >= 0 {
		t.state = s.list[i]
		s.list = slices.Delete(s.list, i, i+1)
	}
	return t, nil
}

// release ends the use of a state by a request.
func (s *SupervisorStates) release(t *superTurn, run string) {
	s.mu.Lock()
	s.leave(t, run)
	s.mu.Unlock()
	<-t.token
}

// leave ends the wait of a request, or its use of the state. The state of a long log is kept, and what was read of a log
// that could not be read in time. The caller holds mu.
func (s *SupervisorStates) leave(t *superTurn, run string) {
	if t.requests--; t.requests > 0 {
		return
	}
	delete(s.turns, run)
	if k := t.state; k != nil && (k.unfinished || k.entries >= superEntriesMin) {
		s.keep(k, time.Now())
	}
}

// keep keeps a state, and drops those that were used longest ago as the limits need it. The caller holds mu.
func (s *SupervisorStates) keep(k *superState, now time.Time) {
	k.used = now
	s.list = append(s.list, k)
	sum, unfinished := 0, 0
	var kept []*superState
	for i, k := range slices.Backward(s.list) {
		if k.unfinished {
			unfinished++
		} else {
			sum += k.bytes
		}
		isTooMuch := unfinished > longReplaysMax || !k.unfinished && sum > superBytesMax && i < len(s.list)-1
		if !isTooMuch && len(kept) < superStatesMax {
			kept = append(kept, k)
		}
	}
	slices.Reverse(kept)
	s.list = kept
	time.AfterFunc(superAge+time.Second, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = slices.DeleteFunc(s.list, func(k *superState) bool { return time.Since(k.used) > superAge })
	})
}
