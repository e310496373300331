package httpapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

const testRun = "01k9z3abcdefghjkmnpqrstvwx"

func logged(agent string, n uint64) client.Event {
	return client.Event{Published: event.Published{ID: fmt.Sprintf("%s.%s#%d.0", testRun, agent, n), Run: testRun, Agent: agent, Seq: n, Kind: event.KindTurnStarted}}
}

func newFeed(start client.Positions) *runFeed {
	seen := client.Positions{}
	for at, p := range start {
		seen[at] = p
	}
	return &runFeed{run: testRun, start: start, seen: seen, changed: make(chan struct{})}
}

func addEvents(t *testing.T, r *runFeed, list ...client.Event) {
	t.Helper()
	for _, e := range list {
		if err := r.add(e, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
}

// takeIDs reads what a feed has for a reader, as a stream does.
func takeIDs(t *testing.T, p *feedReader, seen client.Positions) (ids []string) {
	t.Helper()
	number := p.next
	events, err := p.take(t.Context(), seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if number++; e.event.Seq == 0 && number <= p.skip || !seen.Advance(e.event) {
			continue
		}
		if p.cursorsMatch && e.event.Seq > 0 && e.cursor != seen.Text(testRun) {
			t.Errorf("the cursor of the feed at %s is not the reader's", e.event.ID)
		}
		ids = append(ids, strings.TrimPrefix(e.event.ID, testRun+"."))
	}
	return ids
}

// A reader that comes later gets what it has not seen from the feed, without the pieces of replies that it may have had.
func TestReadersJoinAFeed(t *testing.T) {
	r := newFeed(client.Positions{})
	delta := client.Event{Published: event.Published{ID: testRun + ".root#lease-1.0", Run: testRun, Agent: "root", Kind: event.KindMessageDelta}}
	addEvents(t, r, logged("root", 1), logged("root", 2), delta, logged("super", 1))
	seen := client.Positions{}
	seen.Advance(logged("root", 1))
	p, complete := r.place(seen)
	if !complete {
		t.Error("the feed has all events since its start, and says that it does not")
	}
	if got := fmt.Sprint(takeIDs(t, p, seen)); got != "[root#2.0 super#1.0]" {
		t.Error(got)
	}
	r.mu.Lock()
	changed := r.changed
	r.mu.Unlock()
	if events, _, err := p.look(seen); len(events) > 0 || err != nil || !p.cursorsMatch {
		t.Errorf("%v, %v: the reader has seen what the feed has, and does not use its cursors", events, err)
	}
	addEvents(t, r, delta, logged("root", 3))
	<-changed
	if got := fmt.Sprint(takeIDs(t, p, seen)); got != "[root#lease-1.0 root#3.0]" {
		t.Error(got)
	}
	r.end(errFeedEnded)
	if _, err := p.take(t.Context(), seen); !errors.Is(err, errFeedEnded) {
		t.Error(err)
	}
	if _, complete := newFeed(seen).place(client.Positions{}); complete {
		t.Error("a feed that began later is complete for a reader that has seen nothing")
	}
}

// A feed keeps the newest events. A reader that needs earlier ones is told so, and one that waits ends with its request.
func TestReaderBehindAFeed(t *testing.T) {
	r := newFeed(client.Positions{})
	p, _ := r.place(client.Positions{})
	big := []byte(strings.Repeat("x", feedBytesMax/4))
	for n := range uint64(8) {
		if err := r.add(logged("root", n+1), big); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.take(t.Context(), client.Positions{}); !errors.Is(err, errBehind) {
		t.Errorf("%v", err)
	}
	if r.size > feedBytesMax || len(r.events) != 3 {
		t.Errorf("the feed keeps %d events, %d bytes", len(r.events), r.size)
	}
	p, complete := r.place(client.Positions{})
	if complete {
		t.Error("a feed that has dropped events says that it has all")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.take(ctx, client.Positions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
