package client_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// A client that may read no texts fetches the events of a live run from its logs, some at a time: each fetch costs the node
// a replay of all logs of the run.
func TestEventsWithoutTextsAreFetchedTogether(t *testing.T) {
	const events = 500
	withoutTexts := func(n int, kind, content string) toldEvent {
		id := fmt.Sprintf("%s.super#%d.0", run, n)
		raw := fmt.Appendf(nil, `{"v":1,"id":%q,"ts":"2026-01-02T03:04:05.000Z","run":%q,"agent":"super","seq":%d,"kind":%q,"content":%q}`, id, run, n, kind, content)
		return toldEvent{at: run + ".super", n: uint64(n), kind: kind, id: id, raw: raw}
	}
	d, c := playHistory(t, nil)
	client.ReadNoTexts(c)
	publish := func(e toldEvent) {
		if err := d.nc.Publish("troupe.evt."+e.at+"."+e.kind, e.raw); err != nil {
			t.Error(err)
		}
	}
	var published sync.WaitGroup
	defer published.Wait()
	published.Go(func() {
		<-d.asked
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		for n := range events {
			kind := event.KindTurnStarted
			if n == events-1 {
				kind = event.KindRunFinished
			}
			d.mu.Lock()
			d.all = append(d.all, withoutTexts(n+1, kind, ""))
			d.happened = len(d.all)
			d.mu.Unlock()
			publish(withoutTexts(n+1, kind, event.WithoutTexts))
			publish(withoutTexts(0, event.KindMessageDelta, event.WithoutTexts)) // no log has it
			<-tick.C
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began, next := time.Now(), uint64(1)
	err := c.Events(ctx, run, nil, true, func(e client.Event, _ []byte) error {
		if e.Seq != next || e.Content != "" {
			t.Errorf("%+v; want event %d with its texts", e, next)
		}
		next++
		return nil
	})
	if err != nil || next != events+1 {
		t.Errorf("%d of %d events, %v", next-1, events, err)
	}
	fetches := int(time.Since(began)/client.FetchInterval) + 2 // at the beginning, and at once for the first event
	pages := fetches + events/pageEntries
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.requests > pages {
		t.Errorf("%d requests for %d events; want at most %d: %d fetches and their full pages", d.requests, events, pages, fetches)
	}
	t.Logf("%d requests for %d events in %v", d.requests, events, time.Since(began))
}
