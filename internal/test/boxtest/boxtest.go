// Package boxtest is the one conformance suite of mailbox.Post.
package boxtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// patience ends a test that waits for something that does not happen.
const patience = 60 * time.Second

// Run runs the suite; open makes a Post with empty logs, which ends with t.
func Run(t *testing.T, open func(t *testing.T) mailbox.Post) {
	for name, test := range map[string]func(*testing.T, mailbox.Post){
		"append and read":      appendAndRead,
		"order per address":    orderPerAddress,
		"bounds of read":       testBounds,
		"error of each":        errorOfEach,
		"tail sees all, once":  tailSeesAll,
		"tail starts at once":  tailStartsAtOnce,
		"two tails":            twoTails,
		"append from deliver":  appendFromDeliver,
		"stop ends delivery":   stopEnds,
		"addresses":            testAddresses,
		"many addresses":       manyAddresses,
		"purge":                testPurge,
		"canceled":             testCanceled,
		"too large":            tooLarge,
		"unknown bytes":        unknownBytes,
		"read while appending": readWhileAppending,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
	for name, test := range map[string]func(*testing.T, mailbox.Store){
		"heads":    testHeads,
		"import":   testImport,
		"read run": readRun,
		"room":     testRoom,
		"closed":   testClosed,
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

// putEntry appends and waits for the place.
func putEntry(t *testing.T, p mailbox.Post, to mailbox.Address, data string) uint64 {
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

// appendRefused appends and returns the error, which must not be nil.
func appendRefused(t *testing.T, p mailbox.Post, ctx context.Context, to mailbox.Address, data []byte) error {
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

func readEntries(t *testing.T, p mailbox.Post, at mailbox.Address, after, through uint64) []mailbox.Message {
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

func entryTexts(all []mailbox.Message) []string {
	var out []string
	for _, m := range all {
		out = append(out, string(m.Data))
	}
	return out
}

// tailCollector is a tail that records messages and can wait for them.
type tailCollector struct {
	mu   sync.Mutex
	some *sync.Cond
	all  []mailbox.Message
	by   map[mailbox.Address][]mailbox.Message
}

func collectTail(t *testing.T, p mailbox.Post) (c *tailCollector, stop func()) {
	t.Helper()
	c = &tailCollector{by: map[mailbox.Address][]mailbox.Message{}}
	c.some = sync.NewCond(&c.mu)
	stop, err := p.Tail(t.Context(), c.recordMessage)
	if err != nil {
		t.Fatalf("tail: %v", err)
	}
	once := sync.OnceFunc(stop)
	t.Cleanup(once)
	return c, once
}

func (c *tailCollector) recordMessage(m mailbox.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, m)
	c.by[m.To] = append(c.by[m.To], m)
	c.some.Broadcast()
}

// awaitCount returns when n messages have arrived, or fails the test.
func (c *tailCollector) awaitCount(t *testing.T, n int) {
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

func (c *tailCollector) messagesOf(a mailbox.Address) []mailbox.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.by[a])
}

// compareMessages compares the messages of an address from a tail and from a read.
func compareMessages(t *testing.T, tail, stored []mailbox.Message) {
	t.Helper()
	equal := slices.EqualFunc(tail, stored, func(a, b mailbox.Message) bool {
		return a.To == b.To && a.Place == b.Place && a.At == b.At && a.Nanos == b.Nanos && a.Imported == b.Imported && bytes.Equal(a.Data, b.Data)
	})
	if !equal {
		t.Fatalf("the tail and the log differ:\n%v\n%v", entryTexts(tail), entryTexts(stored))
	}
}

func appendAndRead(t *testing.T, p mailbox.Post) {
	if got := readEntries(t, p, "run.a", 0, 0); len(got) > 0 {
		t.Fatalf("an empty log holds %v", got)
	}
	before := time.Now().UnixMilli()
	for i := range 10 {
		place := putEntry(t, p, "run.a", fmt.Sprint(i))
		got := readEntries(t, p, "run.a", 0, 0)
		if len(got) != i+1 || got[i].Place != place || string(got[i].Data) != fmt.Sprint(i) {
			t.Fatalf("acknowledged at %d, but the log holds %v", place, entryTexts(got))
		}
		if got[i].At < before-1000 || got[i].At > time.Now().UnixMilli()+1000 {
			t.Errorf("stamped %d, at %d", got[i].At, before)
		}
	}
}
