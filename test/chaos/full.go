package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	native "github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// Ways in which there can be no room (FM8).
const (
	fullStreams = "streams" // the streams of logs reach their limit: every append is refused, with a certain outcome
	fullDisk    = "disk"    // the disk beneath the server is full: the outcome of an append is unknown
)

const (
	// diskSmall is the size of a disk that is to be filled.
	diskSmall = 256 << 20
	// roomLeft is how much the streams may still store when they are capped.
	roomLeft = 16 << 10
	// stillPatience is how long work under way may take to stop.
	stillPatience = 3 * time.Minute
	// toldWithin is the time within which a node must report that it cannot write.
	toldWithin = 10 * time.Second
	// noSpace is the system's error text for a full disk.
	noSpace = "no space left"
	// standsFor is how long nothing may begin while there is no room.
	standsFor = 5 * time.Second
)

// fullStore is the scenario in which the store has no room for a while.
type fullStore struct{ *testCluster }

// run takes the room away while runs continue, and gives it back. Until then nothing may
// begin, and after it all runs must end as if nothing had happened. Even if a problem is found,
// run gives the room back and ends the scenario.
func (t *fullStore) run() {
	t.load.beginRuns()
	w := newExpectation()
	stop, err := t.client.Watch(w.noteEvent)
	if err == nil {
		defer stop()
		err = waitUntil(busyPatience, func() bool { return t.load.countEnded() >= t.o.atOnce })
	}
	give := func() error { return nil }
	if err == nil {
		give, err = t.takeAndHold(w)
	}
	b := &fault{kind: "full", at: w.from}
	t.observer.faultBegins(b)
	if err == nil {
		err = t.watchNoRoom(w)
	}
	if err != nil {
		t.found.add("full: %v", err)
	}
	given := time.Now()
	err = give()
	t.observer.faultEnds(b)
	if err == nil {
		err = t.awaitRoom(w, given)
	}
	if err != nil {
		t.found.add("full: %v", err)
		t.load.abandon()
		t.load.awaitEnd()
		return
	}
	t.load.awaitEnd()
	t.checkIndex()
}

// takeAndHold takes the room away. On the full disk every node then gets the answer of a model
// that it waited for: an entry that cannot be stored.
func (t *fullStore) takeAndHold(w *expectation) (give func() error, err error) {
	give = func() error { return nil }
	if t.o.full == fullDisk {
		t.p.holdOne()
		defer t.p.releaseAll()
		if err := waitUntil(busyPatience, func() bool { return len(t.p.nodesHeld()) == t.o.nodes }); err != nil {
			return give, fmt.Errorf("of %d nodes only %v came to a model call: %w", t.o.nodes, t.p.nodesHeld(), err)
		}
	}
	if !t.o.broken {
		if give, err = t.takeRoom(); err != nil {
			return give, err
		}
	}
	if t.o.full == fullDisk && !t.o.broken {
		err = t.servers.servers.awaitRefusal(names.Names{}.BoxStream(names.MachinePool(machine), 0))
	}
	w.discardEarlier(time.Now())
	return give, err
}

// awaitRefusal waits until a server has logged that it could not write an entry of a stream. Until
// then the rest of its last page takes a few more entries; from then on none.
func (s *servers) awaitRefusal(stream string) error {
	one, until := s.list[0], time.Now().Add(toldWithin)
	for {
		data, err := os.ReadFile(filepath.Join(s.dir, one.name+".log"))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, stream) && strings.Contains(line, noSpace) {
				return nil
			}
		}
		if time.Now().After(until) {
			return fmt.Errorf("the disk is full, and after %v the server has refused nothing of %s", toldWithin, stream)
		}
		time.Sleep(poll)
	}
}

// takeRoom takes the room away; give gives it back.
func (t *fullStore) takeRoom() (give func() error, err error) {
	if t.o.full == fullStreams {
		return t.servers.servers.capStreams()
	}
	one := t.servers.servers.list[0]
	path := filepath.Join(one.store, "ballast")
	if err := fillDisk(path); err != nil {
		return func() error { return nil }, err
	}
	return func() error { return os.Remove(path) }, nil
}

// fillDisk writes a file until there is no room for it.
func fillDisk(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for _, size := range []int{1 << 20, 1 << 12, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if !strings.Contains(err.Error(), noSpace) {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// capStreams limits the streams of logs to little more than they hold, as an operator may.
func (s *servers) capStreams() (give func() error, err error) {
	nc, err := bus.Connect(s.options(roleSetup, ""))
	if err != nil {
		return func() error { return nil }, err
	}
	js, err := native.New(nc)
	was := map[string]int64{}
	set := func(name string, room func(*native.StreamInfo) int64) error {
		ctx, cancel := context.WithTimeout(context.Background(), serverPatience)
		defer cancel()
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return err
		}
		c := stream.CachedInfo().Config
		was[name], c.MaxBytes = max(was[name], c.MaxBytes), room(stream.CachedInfo())
		_, err = js.UpdateStream(ctx, c)
		return err
	}
	give = func() error {
		defer nc.Close()
		var errs []error
		for name, most := range was {
			errs = append(errs, set(name, func(*native.StreamInfo) int64 { return most }))
		}
		return errors.Join(errs...)
	}
	if err == nil {
		var led map[string]string
		led, err = s.streamLeaders()
		for _, name := range sortedKeys(led) {
			pool, _, ok := names.Names{}.ParseBoxStream(name)
			if err == nil && ok && !strings.EqualFold(pool, recorderPool) {
				err = set(name, func(i *native.StreamInfo) int64 { return int64(i.State.Bytes) + roomLeft })
			}
		}
	}
	if err == nil && len(was) == 0 {
		err = errors.New("there are no streams of logs")
	}
	return give, err
}

// watchNoRoom waits until nothing begins any more, and judges whether it stays so.
func (t *fullStore) watchNoRoom(w *expectation) error {
	var s stillness
	how := ""
	if t.o.full == fullDisk {
		for _, m := range t.nodes.list {
			s.waiting = append(s.waiting, m.name)
		}
		// The judge finds the nodes that have not reported by then.
		_ = waitUntil(toldWithin, func() bool { return w.allReported(w.told, s.waiting) })
	} else {
		if err := waitUntil(t.o.scalePatience(stillPatience), t.isStill()); err != nil {
			return fmt.Errorf("the runs went on though the streams are full: %w", err)
		}
		refused := &client.Error{}
		_, err := t.client.Run(context.Background(), t.load.newRequest(client.NewID()))
		// The node that answers may have been refused an entry before, or not yet.
		if !errors.As(err, &refused) || refused.Code != client.CodeLogs && refused.Code != client.CodeLimit || refused.Hint == "" {
			return fmt.Errorf("a run was asked for while the streams were full, and the answer is %v", err)
		}
		how = fmt.Sprintf("a new run is refused with %s: %s (%s)", refused.Code, refused.Text, refused.Hint)
	}
	tools, calls := len(t.servers.readStarts()), t.p.countRequests()
	time.Sleep(standsFor)
	s.tools, s.calls = len(t.servers.readStarts())-tools, t.p.countRequests()-calls
	last, bad := w.listProblems(s)
	for _, text := range bad {
		t.found.add("full: %s", text)
	}
	if t.o.full == fullDisk {
		how = fmt.Sprintf("of %d nodes that have something to write %d said logs.unavailable, the last after %v", len(s.waiting),
			len(s.waiting)-len(w.listSilent(w.told, s.waiting)), last.Round(time.Millisecond))
	}
	fmt.Printf("no room (%s): %s; then %d tools and %d model calls were begun in %v\n", t.o.full, how, s.tools, s.calls, standsFor)
	return nil
}

// isStill reports whether no effect and no model call has begun for a while.
func (t *fullStore) isStill() func() bool {
	was, since := -1, time.Now()
	return func() bool {
		if now := len(t.servers.readStarts()) + t.p.countRequests(); now != was {
			was, since = now, time.Now()
		}
		return time.Since(since) > standsFor
	}
}

// countRequests returns the number of requests.
func (p *provider) countRequests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// serverRests is how long a server may take to store again by itself, once there is room. A
// server that has turned its store off must be restarted.
const serverRests = 15 * time.Second

// goesPatience is how long it may take after that until runs continue.
const goesPatience = 2 * time.Minute

// awaitRoom waits until the runs continue.
func (t *fullStore) awaitRoom(w *expectation, given time.Time) error {
	calls := t.p.countRequests()
	goes := func() bool { return t.p.countRequests() > calls }
	how := "by itself"
	if err := waitUntil(serverRests, goes); err != nil {
		how = "after its server was started again"
		one := t.servers.servers.list[0]
		if err := errors.Join(t.servers.servers.killServer(one), t.servers.servers.startServer(one)); err != nil {
			return err
		}
		if err := t.servers.servers.awaitServer(one); err != nil {
			return err
		}
	}
	if err := waitUntil(goesPatience, goes); err != nil {
		return fmt.Errorf("there is room, and nothing goes on: %w", err)
	}
	fmt.Printf("room again: the first model call came after %v, %s\n", time.Since(given).Round(time.Millisecond), how)
	return t.awaitWrites(w)
}

// awaitWrites waits until all nodes that reported that they cannot write have reported that
// they can. If the server was restarted, the observer may be disconnected at that moment, and
// an event is published only once: so the logs of the nodes count as well.
func (t *fullStore) awaitWrites(w *expectation) error {
	var left []string
	err := waitUntil(goesPatience, func() bool {
		left = w.listSilent(w.back, sortedKeys(w.told))
		for _, m := range t.nodes.list {
			if writesAgain(m.readLog()) {
				left = slices.DeleteFunc(left, func(n string) bool { return n == m.name })
			}
		}
		return len(left) == 0
	})
	if err != nil {
		return fmt.Errorf("%v said that they cannot write, and not that they can again", left)
	}
	return nil
}

// writesAgain reports whether a node logged last that it can write again.
func writesAgain(log string) bool {
	return strings.LastIndex(log, "the logs can be written again") > strings.LastIndex(log, "journal_unavailable")
}

// mountSmallDisks gives each server a small disk in memory.
func (s *servers) mountSmallDisks() error {
	for _, one := range s.list {
		if err := os.MkdirAll(one.store, 0o755); err != nil {
			return err
		}
		if err := runCommand("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", diskSmall), "tmpfs", one.store); err != nil {
			return fmt.Errorf("%w: %w", errNoDisks, err)
		}
	}
	return nil
}

// unmountSmallDisks unmounts them.
func (s *servers) unmountSmallDisks() error {
	var errs []error
	for _, one := range s.list {
		errs = append(errs, runCommand("umount", one.store))
	}
	return errors.Join(errs...)
}
