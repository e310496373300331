// Package boxtest is the one conformance suite of mailbox.Post.
package boxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// patience ends a test that waits for something that does not come.
const patience = 60 * time.Second

// Run runs the suite; open makes a Post with empty logs, which ends with t.
func Run(t *testing.T, open func(t *testing.T) mailbox.Post) {
	for name, test := range map[string]func(*testing.T, mailbox.Post){
		"append and read":      appendAndRead,
		"order per address":    orderPerAddress,
		"bounds of read":       bounds,
		"error of each":        errorOfEach,
		"tail sees all, once":  tailSeesAll,
		"tail starts at once":  tailStartsAtOnce,
		"two tails":            twoTails,
		"append from deliver":  appendFromDeliver,
		"stop ends delivery":   stopEnds,
		"addresses":            addresses,
		"many addresses":       manyAddresses,
		"purge":                purge,
		"canceled":             canceled,
		"too large":            tooLarge,
		"unknown bytes":        unknownBytes,
		"read while appending": readWhileAppending,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
	for name, test := range map[string]func(*testing.T, mailbox.Store){
		"read run": readRun,
		"room":     room,
		"closed":   closed,
	} {
		t.Run(name, func(t *testing.T) {
			if s, ok := open(t).(mailbox.Store); ok {
				test(t, s)
			}
		})
	}
}

func context60(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// put appends and waits for the place.
func put(t *testing.T, p mailbox.Post, to mailbox.Address, data string) uint64 {
	t.Helper()
	type answer struct {
		place uint64
		err   error
	}
	got := make(chan answer, 2)
	p.Append(context60(t), to, []byte(data), func(place uint64, err error) { got <- answer{place, err} })
	select {
	case a := <-got:
		if a.err != nil || a.place == 0 {
			t.Fatalf("append: place %d, %v", a.place, a.err)
		}
		return a.place
	case <-time.After(patience):
		t.Fatal("append: done was not called")
	}
	return 0
}

// refused appends and returns the error, which there must be.
func refused(t *testing.T, p mailbox.Post, ctx context.Context, to mailbox.Address, data []byte) error {
	t.Helper()
	got := make(chan error, 2)
	p.Append(ctx, to, data, func(_ uint64, err error) { got <- err })
	select {
	case err := <-got:
		if err == nil {
			t.Fatal("append succeeded")
		}
		return err
	case <-time.After(patience):
		t.Fatal("append: done was not called")
	}
	return nil
}

func read(t *testing.T, p mailbox.Post, at mailbox.Address, after, through uint64) []mailbox.Message {
	t.Helper()
	var all []mailbox.Message
	err := p.Read(context60(t), at, after, through, func(m mailbox.Message) error {
		all = append(all, m)
		return nil
	})
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	for i, m := range all {
		if m.To != at || m.At == 0 || i > 0 && m.Place <= all[i-1].Place {
			t.Fatalf("read: message %d is %+v", i, m)
		}
	}
	return all
}

func texts(all []mailbox.Message) []string {
	var out []string
	for _, m := range all {
		out = append(out, string(m.Data))
	}
	return out
}

// collector is a tail that remembers, and can be waited for.
type collector struct {
	mu   sync.Mutex
	some *sync.Cond
	all  []mailbox.Message
	by   map[mailbox.Address][]mailbox.Message
}

func collect(t *testing.T, p mailbox.Post) (c *collector, stop func()) {
	t.Helper()
	c = &collector{by: map[mailbox.Address][]mailbox.Message{}}
	c.some = sync.NewCond(&c.mu)
	stop, err := p.Tail(t.Context(), c.take)
	if err != nil {
		t.Fatalf("tail: %v", err)
	}
	once := sync.OnceFunc(stop)
	t.Cleanup(once)
	return c, once
}

func (c *collector) take(m mailbox.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, m)
	c.by[m.To] = append(c.by[m.To], m)
	c.some.Broadcast()
}

// wait returns when n messages have come, or fails the test.
func (c *collector) wait(t *testing.T, n int) {
	t.Helper()
	late := time.AfterFunc(patience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.some.Broadcast()
	})
	defer late.Stop()
	until := time.Now().Add(patience)
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.all) < n && time.Now().Before(until) {
		c.some.Wait()
	}
	if len(c.all) != n {
		t.Fatalf("tail: %d messages, want %d", len(c.all), n)
	}
}

func (c *collector) at(a mailbox.Address) []mailbox.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.by[a])
}

// same compares what a tail and a read say of an address.
func same(t *testing.T, tail, stored []mailbox.Message) {
	t.Helper()
	equal := slices.EqualFunc(tail, stored, func(a, b mailbox.Message) bool {
		return a.To == b.To && a.Place == b.Place && a.At == b.At && bytes.Equal(a.Data, b.Data)
	})
	if !equal {
		t.Fatalf("the tail and the log differ:\n%v\n%v", texts(tail), texts(stored))
	}
}

func appendAndRead(t *testing.T, p mailbox.Post) {
	if got := read(t, p, "run.a", 0, 0); len(got) > 0 {
		t.Fatalf("an empty log holds %v", got)
	}
	before := time.Now().UnixMilli()
	for i := range 10 {
		place := put(t, p, "run.a", fmt.Sprint(i))
		got := read(t, p, "run.a", 0, 0)
		if len(got) != i+1 || got[i].Place != place || string(got[i].Data) != fmt.Sprint(i) {
			t.Fatalf("acknowledged at %d, but the log holds %v", place, texts(got))
		}
		if got[i].At < before-1000 || got[i].At > time.Now().UnixMilli()+1000 {
			t.Errorf("stamped %d, at %d", got[i].At, before)
		}
	}
}

// orderPerAddress: one append after another's done stands behind it, however
// many others append elsewhere.
func orderPerAddress(t *testing.T, p mailbox.Post) {
	const writers, each = 16, 50
	c, _ := collect(t, p)
	var all sync.WaitGroup
	for w := range writers {
		to := mailbox.At("run", fmt.Sprintf("a%d", w))
		all.Add(1)
		var next func(i int)
		next = func(i int) {
			calls := 0
			p.Append(t.Context(), to, []byte(fmt.Sprint(i)), func(place uint64, err error) {
				if calls++; calls > 1 || err != nil {
					t.Errorf("done: call %d, %v", calls, err)
				}
				if i+1 < each && err == nil {
					go next(i + 1)
					return
				}
				all.Done()
			})
		}
		next(0)
	}
	all.Wait()
	c.wait(t, writers*each)
	var want []string
	for i := range each {
		want = append(want, fmt.Sprint(i))
	}
	for w := range writers {
		at := mailbox.At("run", fmt.Sprintf("a%d", w))
		got := read(t, p, at, 0, 0)
		if !slices.Equal(texts(got), want) {
			t.Errorf("%s: %v", at, texts(got))
		}
		same(t, c.at(at), got)
	}
}

func bounds(t *testing.T, p mailbox.Post) {
	var place []uint64
	for i := range 6 {
		place = append(place, put(t, p, "run.a", fmt.Sprint(i)))
		put(t, p, "run.b", "other")
		put(t, p, "run.a2", "other")
	}
	for _, c := range []struct {
		after, through uint64
		want           []string
	}{
		{0, 0, []string{"0", "1", "2", "3", "4", "5"}},
		{place[1], 0, []string{"2", "3", "4", "5"}},
		{place[1], place[3], []string{"2", "3"}},
		{place[1], place[3] + 1, []string{"2", "3"}},
		{0, place[0], []string{"0"}},
		{place[5], 0, nil},
		{place[5] + 1000, 0, nil},
		{place[2], place[2], nil},
		{place[3], place[1], nil},
		{place[4], place[5] + 1000, []string{"5"}},
	} {
		if got := texts(read(t, p, "run.a", c.after, c.through)); !slices.Equal(got, c.want) {
			t.Errorf("(%d, %d]: %v, want %v", c.after, c.through, got, c.want)
		}
	}
}

func errorOfEach(t *testing.T, p mailbox.Post) {
	for i := range 5 {
		put(t, p, "run.a", fmt.Sprint(i))
	}
	enough := errors.New("enough")
	seen := 0
	err := p.Read(context60(t), "run.a", 0, 0, func(mailbox.Message) error {
		if seen++; seen == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || seen != 2 {
		t.Errorf("%v after %d messages", err, seen)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Read(ctx, "run.a", 0, 0, func(mailbox.Message) error { return nil }); err == nil {
		t.Error("read with an ended context")
	}
}

func tailSeesAll(t *testing.T, p mailbox.Post) {
	put(t, p, "run.a", "before")
	put(t, p, "run.b", "before")
	c, _ := collect(t, p)
	const n = 300
	for i := range n {
		put(t, p, mailbox.At("run", string(rune('a'+i%7))), fmt.Sprint(i))
	}
	c.wait(t, n)
	for i := range 7 {
		at := mailbox.At("run", string(rune('a'+i)))
		stored := read(t, p, at, 0, 0)
		if i < 2 {
			stored = stored[1:]
		}
		same(t, c.at(at), stored)
	}
}

// tailStartsAtOnce: what is appended the moment after Tail returned is seen,
// and nothing twice, also with appends under way.
func tailStartsAtOnce(t *testing.T, p mailbox.Post) {
	for i := range 20 {
		to := mailbox.At("run", fmt.Sprintf("a%d", i))
		put(t, p, to, "before")
		c, stop := collect(t, p)
		place := put(t, p, to, "after")
		c.wait(t, 1)
		if got := c.at(to); got[0].Place != place {
			t.Fatalf("round %d: got %v, want place %d", i, got, place)
		}
		stop()
	}
}

func twoTails(t *testing.T, p mailbox.Post) {
	one, stop := collect(t, p)
	put(t, p, "run.a", "1")
	two, _ := collect(t, p)
	put(t, p, "run.a", "2")
	one.wait(t, 2)
	two.wait(t, 1)
	stop()
	put(t, p, "run.a", "3")
	two.wait(t, 2)
	if got := texts(one.at("run.a")); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("one: %v", got)
	}
	if got := texts(two.at("run.a")); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("two: %v", got)
	}
}

// appendFromDeliver: a chain of appends, each made by the delivery of the one before.
func appendFromDeliver(t *testing.T, p mailbox.Post) {
	const hops = 200
	c := &collector{by: map[mailbox.Address][]mailbox.Message{}}
	c.some = sync.NewCond(&c.mu)
	stop, err := p.Tail(t.Context(), func(m mailbox.Message) {
		c.take(m)
		if n := len(m.Data); n < hops {
			to := mailbox.At("run", fmt.Sprintf("a%d", n%5))
			p.Append(t.Context(), to, append(slices.Clone(m.Data), 'x'), func(_ uint64, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	put(t, p, "run.a", "x")
	c.wait(t, hops)
}

func stopEnds(t *testing.T, p mailbox.Post) {
	c, stop := collect(t, p)
	put(t, p, "run.a", "1")
	c.wait(t, 1)
	stop()
	put(t, p, "run.a", "2")
	d, _ := collect(t, p)
	put(t, p, "run.a", "3")
	d.wait(t, 1)
	c.wait(t, 1)
}

func addresses(t *testing.T, p mailbox.Post) {
	ctx := context60(t)
	for _, at := range []mailbox.Address{"r1.super", "r1.root", "r1.root-1-0", "r2.root"} {
		put(t, p, at, "x")
		put(t, p, at, "y")
	}
	for run, want := range map[string][]mailbox.Address{
		"r1": {"r1.root", "r1.root-1-0", "r1.super"},
		"r2": {"r2.root"},
		"r":  nil,
		"":   {"r1.root", "r1.root-1-0", "r1.super", "r2.root"},
	} {
		got, err := p.Addresses(ctx, run)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("run %q: %v, %v", run, got, err)
		}
	}
}

func manyAddresses(t *testing.T, p mailbox.Post) {
	const many, each = 2000, 3
	c, _ := collect(t, p)
	var all sync.WaitGroup
	var mu sync.Mutex
	places := map[mailbox.Address]map[uint64]bool{}
	for i := range many * each {
		to := mailbox.At(fmt.Sprintf("r%d", i%10), fmt.Sprintf("a%d", i%many))
		all.Add(1)
		p.Append(t.Context(), to, fmt.Appendf(nil, "%d", i), func(place uint64, err error) {
			defer all.Done()
			mu.Lock()
			defer mu.Unlock()
			if places[to] == nil {
				places[to] = map[uint64]bool{}
			}
			if err != nil || places[to][place] {
				t.Errorf("%s: place %d twice, or %v", to, place, err)
			}
			places[to][place] = true
		})
	}
	all.Wait()
	c.wait(t, many*each)
	got, err := p.Addresses(context60(t), "")
	if err != nil || len(got) != many {
		t.Fatalf("%d addresses, %v", len(got), err)
	}
	for at, want := range places {
		tail := c.at(at)
		for i, m := range tail {
			if !want[m.Place] || i > 0 && m.Place <= tail[i-1].Place {
				t.Fatalf("%s: %v", at, tail)
			}
		}
		if len(tail) != each {
			t.Fatalf("%s: %d of %d", at, len(tail), each)
		}
	}
	for i := range 100 {
		at := mailbox.At(fmt.Sprintf("r%d", i%10), fmt.Sprintf("a%d", i))
		same(t, c.at(at), read(t, p, at, 0, 0))
	}
}

func purge(t *testing.T, p mailbox.Post) {
	ctx := context60(t)
	put(t, p, "run.a", "1")
	last := put(t, p, "run.a", "2")
	put(t, p, "run.b", "1")
	if err := p.Purge(ctx, "run.a"); err != nil {
		t.Fatal(err)
	}
	if err := p.Purge(ctx, "run.never"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, p, "run.a", 0, 0); len(got) > 0 {
		t.Errorf("after a purge: %v", texts(got))
	}
	if got := read(t, p, "run.b", 0, 0); len(got) != 1 {
		t.Errorf("the neighbour: %v", texts(got))
	}
	if got, err := p.Addresses(ctx, "run"); err != nil || !slices.Equal(got, []mailbox.Address{"run.b"}) {
		t.Errorf("addresses: %v, %v", got, err)
	}
	if place := put(t, p, "run.a", "3"); place <= last {
		t.Errorf("place %d again, after %d", place, last)
	}
	if got := texts(read(t, p, "run.a", 0, 0)); !slices.Equal(got, []string{"3"}) {
		t.Errorf("after a purge and an append: %v", got)
	}
}

func canceled(t *testing.T, p mailbox.Post) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := refused(t, p, ctx, "run.a", []byte("x")); !errors.Is(err, mailbox.ErrClosed) {
		t.Error(err)
	}
	// With the cancel at any moment, done is called once.
	const n = 500
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	calls := make(chan error, 2*n)
	for i := range n {
		p.Append(ctx, "run.a", fmt.Appendf(nil, "%d", i), func(_ uint64, err error) { calls <- err })
		if i == n/2 {
			cancel()
		}
	}
	for range n {
		select {
		case err := <-calls:
			if err != nil && !errors.Is(err, mailbox.ErrClosed) {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("an append has no answer")
		}
	}
	put(t, p, "run.a", "last") // the Post goes on
	if len(calls) > 0 {
		t.Errorf("%d answers too many", len(calls))
	}
}

func tooLarge(t *testing.T, p mailbox.Post) {
	put(t, p, "run.a", strings.Repeat("x", mailbox.EntryBytesMax))
	err := refused(t, p, t.Context(), "run.a", make([]byte, mailbox.EntryBytesMax+1))
	if !errors.Is(err, mailbox.ErrTooLarge) {
		t.Error(err)
	}
	if got := read(t, p, "run.a", 0, 0); len(got) != 1 || len(got[0].Data) != mailbox.EntryBytesMax {
		t.Errorf("%d entries", len(got))
	}
}

// unknownBytes: a Post carries bytes; what they mean is the reader's concern.
func unknownBytes(t *testing.T, p mailbox.Post) {
	c, _ := collect(t, p)
	want := []string{"", "\x00", "\xdd\xff\xff\xff\xff", "NATS/1.0 100 Idle Heartbeat\r\n\r\n", "{}"}
	for _, data := range want {
		put(t, p, "run.a", data)
	}
	c.wait(t, len(want))
	got := read(t, p, "run.a", 0, 0)
	if !slices.Equal(texts(got), want) {
		t.Errorf("%q", texts(got))
	}
	same(t, c.at("run.a"), got)
}

// readWhileAppending: a read ends though the log goes on growing.
func readWhileAppending(t *testing.T, p mailbox.Post) {
	ctx, cancel := context.WithCancel(t.Context())
	var grown sync.WaitGroup
	grown.Add(1)
	var next func()
	next = func() {
		p.Append(ctx, "run.a", []byte("x"), func(_ uint64, err error) {
			if err != nil {
				grown.Done()
				return
			}
			go next()
		})
	}
	next()
	last := 0
	for range 30 {
		n := len(read(t, p, "run.a", 0, 0))
		if n < last {
			t.Errorf("%d entries, %d before", n, last)
		}
		last = n
	}
	cancel()
	grown.Wait()
}

func readRun(t *testing.T, p mailbox.Store) {
	ctx := context60(t)
	want := map[mailbox.Address][]string{}
	for i := range 200 {
		at := mailbox.At("r1", fmt.Sprintf("a%d", i%23))
		put(t, p, at, fmt.Sprint(i))
		want[at] = append(want[at], fmt.Sprint(i))
		put(t, p, mailbox.At("r2", "a"), "other")
	}
	got := map[mailbox.Address][]mailbox.Message{}
	err := p.ReadRun(ctx, "r1", func(m mailbox.Message) error {
		got[m.To] = append(got[m.To], m)
		return nil
	})
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d addresses, %v", len(got), err)
	}
	for at := range want {
		if !slices.Equal(texts(got[at]), want[at]) {
			t.Errorf("%s: %v, want %v", at, texts(got[at]), want[at])
		}
		same(t, got[at], read(t, p, at, 0, 0))
	}
	enough := errors.New("enough")
	if err := p.ReadRun(ctx, "r1", func(mailbox.Message) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	if err := p.ReadRun(ctx, "none", func(mailbox.Message) error { return enough }); err != nil {
		t.Error(err)
	}
}

func room(t *testing.T, p mailbox.Store) {
	put(t, p, "run.a", strings.Repeat("x", 10_000))
	used, most, err := p.Room(context60(t))
	if err != nil || used < 10_000 || most > 0 && used > most {
		t.Errorf("used %d of %d, %v", used, most, err)
	}
}

func closed(t *testing.T, p mailbox.Store) {
	put(t, p, "run.a", "x")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := refused(t, p, t.Context(), "run.a", []byte("x")); !errors.Is(err, mailbox.ErrClosed) {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}
