package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// superEntriesMin is how many entries the log of a supervisor must have for its state to be kept: a shorter one is
	// replayed in less time than it is worth.
	superEntriesMin = 1000
	// superStatesMax is how many states a node keeps, superBytesMax how many bytes their logs have together: a state takes
	// some four times the memory of its log.
	superStatesMax = 16
	superBytesMax  = 32 << 20
	// superAge is how long a state is kept without a request for it.
	superAge = time.Minute
)

// superStates keeps the states of supervisors with long logs between requests, so that the next request reads only what
// has been appended since.
type superStates struct {
	mu   sync.Mutex
	list []*superState // the one that was used last is the last
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
}

// replay is replaySupervisorLog.
func (s *superStates) replay(ctx context.Context, post mailbox.Store, run string) (supervisorReplay, error) {
	k := s.take(run)
	found, err := k.readOn(ctx, post)
	if err == nil && !found { // the log was replaced
		k = newSuperState(run)
		_, err = k.readOn(ctx, post)
	}
	if err != nil {
		return supervisorReplay{}, err
	}
	r := supervisorReplay{state: k.machine.State, damage: k.reader.Damage, place: k.place, requests: k.reader.Requests()}
	s.put(k, time.Now()) // the next request uses k from here on
	return r, nil
}

func newSuperState(run string) *superState {
	at := mailbox.At(run, mailbox.Super)
	m := &activation.Supervisor{Addr: at}
	return &superState{run: run, machine: m, reader: activation.NewLogReader(at, "", mailbox.Epoch{}, m)}
}

// readOn replays what follows. found: the log still holds the entry up to which it was replayed.
func (k *superState) readOn(ctx context.Context, post mailbox.Store) (found bool, err error) {
	found = k.place == 0
	err = post.Read(ctx, k.reader.Addr, max(k.place, 1)-1, 0, func(m mailbox.Message) error {
		if !found {
			if found = m.Place == k.place; !found {
				return errEnough
			}
			return nil
		}
		if r := k.reader.Next(m); errors.Is(r.Err, mailbox.ErrForm) {
			return newerLog(k.reader.Addr)
		}
		k.place, k.entries, k.bytes = m.Place, k.entries+1, k.bytes+len(m.Data)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return false, fmt.Errorf("control: read %s: %w", k.reader.Addr, err)
	}
	return found, nil
}

// take removes the state of a run, so that its request alone uses it; it is a new one if none is kept.
func (s *superStates) take(run string) *superState {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, k := range s.list {
		if k.run == run {
			s.list = slices.Delete(s.list, i, i+1)
			return k
		}
	}
	return newSuperState(run)
}

// put keeps a state of a long log, and drops those that were used longest ago as the limits need it.
func (s *superStates) put(k *superState, now time.Time) {
	if k.entries < superEntriesMin {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k.used = now
	s.list = append(slices.DeleteFunc(s.list, func(other *superState) bool { return other.run == k.run }), k)
	sum := 0
	for i := len(s.list) - 1; i >= 0; i-- {
		if sum += s.list[i].bytes; sum > superBytesMax && i < len(s.list)-1 || len(s.list)-i > superStatesMax {
			s.list = slices.Delete(s.list, 0, i+1)
			break
		}
	}
	time.AfterFunc(superAge+time.Second, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = slices.DeleteFunc(s.list, func(k *superState) bool { return time.Since(k.used) > superAge })
	})
}
