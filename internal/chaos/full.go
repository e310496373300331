package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	native "github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
)

// Ways in which there can be no room (FM8).
const (
	fullStreams = "streams" // the streams of logs reach their limit: every append is refused, and nobody doubts it
	fullDisk    = "disk"    // the disk beneath the server is full: nobody knows of an append
)

const (
	// diskSmall is the size of a disk that is to be filled.
	diskSmall = 256 << 20
	// roomLeft is what the streams may still take when they are capped.
	roomLeft = 16 << 10
	// toldWithin is when a node must have said that it cannot write.
	toldWithin = 10 * time.Second
	// standsFor is for how long nothing must begin while there is no room.
	standsFor = 5 * time.Second
)

// want of room is what the witnesses of a play without room saw.
type want struct {
	mu   sync.Mutex
	told map[string]time.Time // by node: when it said that it cannot write
	back map[string]time.Time // when it said that it can again
}

// see takes the events of nodes.
func (w *want) see(e client.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case e.Kind == "journal.unavailable" && w.told[e.Node].IsZero():
		w.told[e.Node] = time.Now()
	case e.Kind == "journal.available":
		w.back[e.Node] = time.Now()
	}
}

// all reports whether every node has said something.
func (w *want) all(said map[string]time.Time, nodes []*member) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range nodes {
		if said[m.name].IsZero() {
			return false
		}
	}
	return true
}

// playFull takes the room away while runs go on, and gives it back. Until then
// nothing may begin, and after it all must end as if nothing had been.
func (t *theatre) playFull() {
	t.load.begin()
	w := &want{told: map[string]time.Time{}, back: map[string]time.Time{}}
	stop, err := t.client.Watch(w.see)
	if err == nil {
		defer stop()
		err = t.until(busyPatience, func() bool { return t.load.ended() >= t.o.atOnce })
	}
	give := func() error { return nil }
	var at time.Time
	if err == nil {
		at = time.Now()
		give, err = t.takeRoom()
	}
	b := &blow{kind: "full", at: at}
	t.witness.struck(b)
	if err == nil {
		err = t.noRoom(w, at)
	}
	given := time.Now()
	err = errors.Join(err, give())
	t.witness.over(b)
	if err == nil {
		err = t.roomAgain(w, given)
	}
	if err != nil {
		t.found.add("full: %v", err)
	}
	t.load.finish()
	t.indexed()
}

// takeRoom takes the room away; give gives it back.
func (t *theatre) takeRoom() (give func() error, err error) {
	if t.o.full == fullStreams {
		return t.harm.servers.cap()
	}
	one := t.harm.servers.list[0]
	path := filepath.Join(one.store, "ballast")
	if err := fill(path); err != nil {
		return func() error { return nil }, err
	}
	return func() error { return os.Remove(path) }, nil
}

// fill writes a file until there is no room for it.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for _, size := range []int{1 << 20, 1 << 12, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if !strings.Contains(err.Error(), "no space left") {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// cap gives the streams of logs little more than they hold, as an operator may.
func (s *servers) cap() (give func() error, err error) {
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
		led, err = s.leaders()
		for _, name := range sorted(led) {
			pool, _, ok := bus.Names{}.ParseBoxStream(name)
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

// noRoom waits until all stands still, and looks that it stays so.
func (t *theatre) noRoom(w *want, at time.Time) error {
	how := ""
	if t.o.full == fullDisk {
		if err := t.until(toldWithin, func() bool { return w.all(w.told, t.nodes.list) }); err != nil {
			return fmt.Errorf("after %v without room the nodes that said so are %v", toldWithin, w.told)
		}
		last := time.Duration(0)
		for _, told := range w.told {
			last = max(last, told.Sub(at))
		}
		how = fmt.Sprintf("every node said journal.unavailable, the last after %v", last.Round(time.Millisecond))
	} else {
		if err := t.until(busyPatience, t.still()); err != nil {
			return fmt.Errorf("the runs went on though the streams are full: %w", err)
		}
		refused := &client.Error{}
		_, err := t.client.Run(context.Background(), t.load.request(client.NewID()))
		if !errors.As(err, &refused) || refused.Code != client.CodeLimit {
			return fmt.Errorf("a run was asked for while the streams were full, and the answer is %v", err)
		}
		how = fmt.Sprintf("a new run is refused: %s (%s)", refused.Text, refused.Hint)
	}
	tools, calls := len(t.harm.starts()), t.p.asked()
	time.Sleep(standsFor)
	if more := len(t.harm.starts()) - tools; more > 0 {
		t.found.add("%d tools were begun while there was no room", more)
	}
	if more := t.p.asked() - calls; more > 0 {
		t.found.add("%d model calls were begun while there was no room", more)
	}
	fmt.Printf("no room (%s): %s; then %d tools and %d model calls were begun in %v\n", t.o.full, how, len(t.harm.starts())-tools, t.p.asked()-calls, standsFor)
	return nil
}

// still reports whether no effect and no model call has begun for a while.
func (t *theatre) still() func() bool {
	was, since := -1, time.Now()
	return func() bool {
		if now := len(t.harm.starts()) + t.p.asked(); now != was {
			was, since = now, time.Now()
		}
		return time.Since(since) > standsFor
	}
}

// asked is how many requests came.
func (p *provider) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// serverRests is how long a server may take to store again by itself, once there
// is room. One that has turned its store off must be started again.
const serverRests = 15 * time.Second

// roomAgain waits until the runs go on.
func (t *theatre) roomAgain(w *want, given time.Time) error {
	calls := t.p.asked()
	goes := func() bool { return t.p.asked() > calls }
	how := "by itself"
	if err := t.until(serverRests, goes); err != nil {
		how = "after its server was started again"
		one := t.harm.servers.list[0]
		if err := errors.Join(t.harm.servers.kill(one), t.harm.servers.start(one)); err != nil {
			return err
		}
		if err := t.harm.servers.well(one); err != nil {
			return err
		}
	}
	if err := t.until(busyPatience, goes); err != nil {
		return fmt.Errorf("there is room, and nothing goes on: %w", err)
	}
	fmt.Printf("room again: the first model call came after %v, %s\n", time.Since(given).Round(time.Millisecond), how)
	if t.o.full == fullDisk {
		if err := t.until(busyPatience, func() bool { return w.all(w.back, t.nodes.list) }); err != nil {
			return fmt.Errorf("of those that can write again these said so: %v", w.back)
		}
	}
	return nil
}

// small gives each server a small disk in memory.
func (s *servers) small() error {
	for _, one := range s.list {
		if err := os.MkdirAll(one.store, 0o755); err != nil {
			return err
		}
		if err := do("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", diskSmall), "tmpfs", one.store); err != nil {
			return fmt.Errorf("%w: %w", errNoDisks, err)
		}
	}
	return nil
}

// unsmall takes them away again.
func (s *servers) unsmall() error {
	var errs []error
	for _, one := range s.list {
		errs = append(errs, do("umount", one.store))
	}
	return errors.Join(errs...)
}
