package boxtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

func testBounds(t *testing.T, p mailbox.Post) {
	var place []uint64
	for i := range 6 {
		place = append(place, putEntry(t, p, "run.a", fmt.Sprint(i)))
		putEntry(t, p, "run.b", "other")
		putEntry(t, p, "run.a2", "other")
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
		if got := entryTexts(readEntries(t, p, "run.a", c.after, c.through)); !slices.Equal(got, c.want) {
			t.Errorf("(%d, %d]: %v, want %v", c.after, c.through, got, c.want)
		}
	}
}

func errorOfEach(t *testing.T, p mailbox.Post) {
	for i := range 5 {
		putEntry(t, p, "run.a", fmt.Sprint(i))
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

func testAddresses(t *testing.T, p mailbox.Post) {
	ctx := context60(t)
	for _, at := range []mailbox.Address{"r1.super", "r1.root", "r1.root-1-0", "r2.root"} {
		putEntry(t, p, at, "x")
		putEntry(t, p, at, "y")
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

func testPurge(t *testing.T, p mailbox.Post) {
	ctx := context60(t)
	putEntry(t, p, "run.a", "1")
	last := putEntry(t, p, "run.a", "2")
	putEntry(t, p, "run.b", "1")
	if err := p.Purge(ctx, "run.a", 0); err != nil {
		t.Fatal(err)
	}
	if err := p.Purge(ctx, "run.never", 0); err != nil {
		t.Fatal(err)
	}
	if got := readEntries(t, p, "run.a", 0, 0); len(got) > 0 {
		t.Errorf("after a purge: %v", entryTexts(got))
	}
	if got := readEntries(t, p, "run.b", 0, 0); len(got) != 1 {
		t.Errorf("the neighbour: %v", entryTexts(got))
	}
	if got, err := p.Addresses(ctx, "run"); err != nil || !slices.Equal(got, []mailbox.Address{"run.b"}) {
		t.Errorf("addresses: %v, %v", got, err)
	}
	if place := putEntry(t, p, "run.a", "3"); place <= last {
		t.Errorf("place %d again, after %d", place, last)
	}
	if got := entryTexts(readEntries(t, p, "run.a", 0, 0)); !slices.Equal(got, []string{"3"}) {
		t.Errorf("after a purge and an append: %v", got)
	}
	end := putEntry(t, p, "run.a", "end")
	putEntry(t, p, "run.a", "late")
	for range 2 {
		if err := p.Purge(ctx, "run.a", end); err != nil {
			t.Fatal(err)
		}
		if got := entryTexts(readEntries(t, p, "run.a", 0, 0)); !slices.Equal(got, []string{"end", "late"}) {
			t.Errorf("after a purge up to an entry: %v", got)
		}
	}
	if got := readEntries(t, p, "run.b", 0, 0); len(got) != 1 {
		t.Errorf("the neighbour: %v", entryTexts(got))
	}
}

func testCanceled(t *testing.T, p mailbox.Post) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := appendRefused(t, p, ctx, "run.a", []byte("x")); !errors.Is(err, mailbox.ErrClosed) {
		t.Error(err)
	}
	// Whenever the context is canceled, done is called once.
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
	putEntry(t, p, "run.a", "last") // the Post keeps working
	if len(calls) > 0 {
		t.Errorf("%d answers too many", len(calls))
	}
}

func tooLarge(t *testing.T, p mailbox.Post) {
	putEntry(t, p, "run.a", strings.Repeat("x", mailbox.EntryBytesMax))
	err := appendRefused(t, p, t.Context(), "run.a", make([]byte, mailbox.EntryBytesMax+1))
	if !errors.Is(err, mailbox.ErrTooLarge) {
		t.Error(err)
	}
	if got := readEntries(t, p, "run.a", 0, 0); len(got) != 1 || len(got[0].Data) != mailbox.EntryBytesMax {
		t.Errorf("%d entries", len(got))
	}
}

// readWhileAppending checks that a read ends although the log keeps growing.
func readWhileAppending(t *testing.T, p mailbox.Post) {
	const reads, perRead = 30, 1000
	// A read takes as long as the log is long: a log that grows without a bound meanwhile grows with each read by the
	// same factor.
	permits := make(chan struct{}, perRead)
	ctx, cancel := context.WithCancel(t.Context())
	var grown sync.WaitGroup
	grown.Add(1)
	var next func()
	next = func() {
		select {
		case <-permits:
		case <-ctx.Done(): // Append refuses it
		}
		p.Append(ctx, "run.a", []byte("x"), func(_ uint64, err error) {
			if err != nil {
				grown.Done()
				return
			}
			go next()
		})
	}
	go next()
	last := 0
	for range reads {
		for len(permits) < cap(permits) {
			permits <- struct{}{}
		}
		n := len(readEntries(t, p, "run.a", 0, 0))
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
		putEntry(t, p, at, fmt.Sprint(i))
		want[at] = append(want[at], fmt.Sprint(i))
		putEntry(t, p, mailbox.At("r2", "a"), "other")
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
		if !slices.Equal(entryTexts(got[at]), want[at]) {
			t.Errorf("%s: %v, want %v", at, entryTexts(got[at]), want[at])
		}
		compareMessages(t, got[at], readEntries(t, p, at, 0, 0))
	}
	checkStoredOrder(t, got)
	for run, entries := range map[string]uint64{"r1": 200, "r2": 200, "none": 0} {
		counts, err := p.Entries(ctx, run)
		sum := uint64(0)
		for at, n := range counts {
			if sum += n; n == 0 || run == "r1" && n != uint64(len(want[at])) {
				t.Errorf("%s has %d entries, want %d", at, n, len(want[at]))
			}
		}
		if err != nil || sum != entries {
			t.Errorf("%s has %d entries, want %d: %v", run, sum, entries, err)
		}
	}
	enough := errors.New("enough")
	if err := p.ReadRun(ctx, "r1", func(mailbox.Message) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	if err := p.ReadRun(ctx, "none", func(mailbox.Message) error { return enough }); err != nil {
		t.Error(err)
	}
}

// checkStoredOrder checks that messages of different logs, each appended after the answer to the one
// before, can be put in that order.
func checkStoredOrder(t *testing.T, logs map[mailbox.Address][]mailbox.Message) {
	t.Helper()
	all := slices.Concat(slices.Collect(maps.Values(logs))...)
	slices.SortFunc(all, func(a, b mailbox.Message) int { return a.Stamp().Compare(b.Stamp()) })
	for i, text := range entryTexts(all) {
		if text != fmt.Sprint(i) {
			t.Fatalf("message %d of the run comes after %d others", i, slices.Index(entryTexts(all), fmt.Sprint(i)))
		}
	}
}

func testRoom(t *testing.T, p mailbox.Store) {
	putEntry(t, p, "run.a", strings.Repeat("x", 10_000))
	used, most, err := p.Room(context60(t))
	if err != nil || used < 10_000 || most > 0 && used > most {
		t.Errorf("used %d of %d, %v", used, most, err)
	}
}

func testClosed(t *testing.T, p mailbox.Store) {
	putEntry(t, p, "run.a", "x")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := appendRefused(t, p, t.Context(), "run.a", []byte("x")); !errors.Is(err, mailbox.ErrClosed) {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// testHeads checks that every log is reported once, with its newest entry and the number of its
// entries.
func testHeads(t *testing.T, s mailbox.Store) {
	want := map[mailbox.Address]string{}
	for i := range 40 {
		for n := range 1 + i%3 {
			at := mailbox.At(fmt.Sprintf("run%d", i), "root")
			putEntry(t, s, at, fmt.Sprintf("%d of %d", n, i))
			want[at] = fmt.Sprintf("%d: %d of %d", n+1, n, i)
		}
	}
	gone := mailbox.At("gone", "root")
	putEntry(t, s, gone, "x")
	if err := s.Purge(context60(t), gone, 0); err != nil {
		t.Fatal(err)
	}
	got := map[mailbox.Address]string{}
	err := s.Heads(context60(t), func(h mailbox.Head) error {
		if _, twice := got[h.To]; twice {
			t.Errorf("%s comes twice", h.To)
		}
		got[h.To] = fmt.Sprintf("%d: %s", h.Entries, h.Data)
		return nil
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v %v, want %v", err, got, want)
	}
	enough := errors.New("enough")
	if err := s.Heads(context60(t), func(mailbox.Head) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the error of each is lost: %v", err)
	}
}
