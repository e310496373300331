package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// heardEntries is what a Part delivered, by address.
type heardEntries struct {
	mu sync.Mutex
	by map[mailbox.Address][]uint64
	n  int
}

func (h *heardEntries) recordEntry(m mailbox.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by[m.To] = append(h.by[m.To], m.Place)
	h.n++
}

func (h *heardEntries) placesOf(at mailbox.Address) []uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.by[at])
}

// awaitPlace waits until the last place that was delivered of an address is this one.
func (h *heardEntries) awaitPlace(t *testing.T, at mailbox.Address, place uint64) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if list := h.placesOf(at); len(list) > 0 && list[len(list)-1] >= place {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: place %d was never delivered: %v", at, place, h.placesOf(at))
		}
	}
}

// inShards finds one address for each shard.
func inShards(shards int) []mailbox.Address {
	list := make([]mailbox.Address, shards)
	for i, left := 0, shards; left > 0; i++ {
		at := mailbox.At("run", fmt.Sprintf("a%d", i))
		if s := mailbox.Shard(at, shards); list[s] == "" {
			list[s] = at
			left--
		}
	}
	return list
}

// TestPartReadsOnlyItsShards: readers come and go with the shards,
// one for a stream that is held whole and one for each shard otherwise, and no
// entry of a shard that stays is lost, doubled or put out of order.
func TestPartReadsOnlyItsShards(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, jetstream.Config{Shards: 6, Streams: 2})
	addresses := inShards(6)
	put := func(shard int) uint64 {
		place, err := mailbox.Put(t.Context(), p, addresses[shard], []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		return place
	}
	h := &heardEntries{by: map[mailbox.Address][]uint64{}}
	part, err := p.Part(t.Context(), "default", h.recordEntry)
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	want := map[int][]uint64{}
	held := map[int]bool{}
	for s := range addresses {
		put(s) // before anybody reads
	}
	// Shards 0, 2, 4 are stream 0, and 1, 3, 5 are stream 1.
	for _, step := range []struct {
		add, remove []int
		readers     int
	}{
		{add: []int{0}, readers: 1},
		{add: []int{2, 1}, readers: 3},
		{add: []int{4}, readers: 2},
		{add: []int{3, 5, 0}, readers: 2},
		{remove: []int{2}, readers: 3},
		{remove: []int{2, 1}, readers: 4},
		{add: []int{2, 1}, readers: 2},
		{remove: []int{0, 2, 4}, readers: 1},
	} {
		for _, s := range step.remove {
			if held[s] {
				h.awaitPlace(t, addresses[s], want[s][len(want[s])-1]) // what is on the way when it ends is not delivered
			}
		}
		part.Remove(step.remove...)
		if err := part.Add(t.Context(), step.add...); err != nil {
			t.Fatal(err)
		}
		for _, s := range step.remove {
			held[s] = false
		}
		for _, s := range step.add {
			held[s] = true
		}
		if n := part.Readers(); n != step.readers {
			t.Errorf("%+v: %d readers", step, n)
		}
		for range 3 {
			for s := range addresses {
				if place := put(s); held[s] {
					want[s] = append(want[s], place)
				}
			}
		}
	}
	for s, at := range addresses {
		h.awaitPlace(t, at, want[s][len(want[s])-1])
		if got := h.placesOf(at); !slices.Equal(got, want[s]) {
			t.Errorf("shard %d: %v, want %v", s, got, want[s])
		}
	}
}

// TestPartLosesNothingDuringAReaderChange: entries come without a pause
// while another shard of the stream comes and goes.
func TestPartLosesNothingDuringAReaderChange(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, jetstream.Config{Shards: 2, Streams: 1})
	addresses := inShards(2)
	h := &heardEntries{by: map[mailbox.Address][]uint64{}}
	part, err := p.Part(t.Context(), "default", h.recordEntry)
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	if err := part.Add(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	var want []uint64
	for i := range 400 {
		for s, at := range addresses {
			place, err := mailbox.Put(t.Context(), p, at, []byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			if s == 0 {
				want = append(want, place)
			}
		}
		switch i % 20 {
		case 5:
			if err := part.Add(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		case 15:
			part.Remove(1)
		}
	}
	h.awaitPlace(t, addresses[0], want[len(want)-1])
	if got := h.placesOf(addresses[0]); !slices.Equal(got, want) {
		t.Errorf("%d delivered of %d", len(got), len(want))
	}
}

// TestClosedPartStartsNothing: leases still come and go while a node ends. What is asked
// of a Part after its Close starts nothing, and Close waits for all that runs.
func TestClosedPartStartsNothing(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, jetstream.Config{Shards: 6, Streams: 2})
	for range 30 {
		part, err := p.Part(t.Context(), "", func(mailbox.Message) {})
		if err != nil {
			t.Fatal(err)
		}
		began, over := make(chan struct{}), make(chan error)
		go func() {
			for i := range 2000 {
				if err := part.Add(t.Context(), i%6); err != nil {
					over <- err
					return
				}
				if i == 0 {
					close(began)
				}
				part.Remove((i + 5) % 6)
			}
			over <- nil
		}()
		<-began
		part.Close()
		if err := <-over; !errors.Is(err, mailbox.ErrClosed) {
			t.Fatalf("added after the end: %v", err)
		}
		readers := part.Readers()
		part.Remove(0, 1, 2, 3, 4, 5)
		if now := part.Readers(); now > readers {
			t.Fatalf("%d readers after the end, and then %d", readers, now)
		}
	}
}
