package node

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-run/troupe/agent/event"
)

// observeEvents is what observers would see: one line for each event, with when it came.
func observeEvents(t *testing.T, act func(add func(event.Published))) (lines []string, logged string) {
	t.Helper()
	var out strings.Builder
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		tell := newEventPublisher(func(list []event.Published) {
			for _, e := range list {
				lines = append(lines, fmt.Sprintf("%v %s %v", time.Since(began), e.ID, e.Data))
			}
		}, slog.New(slog.NewTextHandler(&out, nil)))
		act(tell.add)
		<-time.After(time.Second) // of the bubble
		synctest.Wait()
	})
	return lines, out.String()
}

func deltaEvent(n int, text string) event.Published {
	return event.Published{ID: fmt.Sprintf("r.root#lease-1.%d", n), Kind: event.KindMessageDelta, Data: event.Delta{Text: text}}
}

func logEvent(log string, n uint64, kind string) event.Published {
	return event.Published{ID: fmt.Sprintf("%s#%d.0", log, n), Seq: n, Kind: kind}
}

// Events wait for each other a moment, so that a server writes once to each
// observer; the pieces of a streamed reply become one event, in its place.
func TestEventsArePublishedInBatches(t *testing.T) {
	t.Parallel()
	got, _ := observeEvents(t, func(add func(event.Published)) {
		add(logEvent("r.root", 1, event.KindModelStarted))
		add(deltaEvent(1, "a"))
		add(logEvent("r.super", 5, event.KindBudgetReserved))
		add(deltaEvent(2, "b"))
		add(logEvent("r.root", 2, event.KindModelFinished))
		add(deltaEvent(3, "c"))
		<-time.After(2 * publishPause) // of the bubble
		add(deltaEvent(4, "d"))
	})
	want := []string{"2ms r.root#1.0 <nil>", "2ms r.root#lease-1.2 {ab}", "2ms r.super#5.0 <nil>", "2ms r.root#2.0 <nil>",
		"2ms r.root#lease-1.3 {c}", "6ms r.root#lease-1.4 {d}"}
	if !slices.Equal(got, want) {
		t.Errorf("told:\n%s", strings.Join(got, "\n"))
	}
}

// A node that publishes many events waits longer for more of them, until there are few again.
func TestEventsOfABusyNodeWaitLonger(t *testing.T) {
	t.Parallel()
	got, _ := observeEvents(t, func(add func(event.Published)) {
		for n := range burstMax + 1 {
			add(logEvent("r.root", uint64(n+1), event.KindToolStarted))
		}
		<-time.After(2 * publishPause) // of the bubble
		add(logEvent("r.root", 100, event.KindToolStarted))
		<-time.After(2 * busyPause) // of the bubble
		add(logEvent("r.root", 101, event.KindToolStarted))
	})
	if want := []string{"54ms r.root#100.0 <nil>", "106ms r.root#101.0 <nil>"}; len(got) != burstMax+3 || !slices.Equal(got[burstMax+1:], want) {
		t.Errorf("%d published, the last of them:\n%s", len(got), strings.Join(got[max(0, len(got)-2):], "\n"))
	}
}

// Of how far a call has come, the newest word is enough.
func TestOnlyTheNewestProgressIsPublished(t *testing.T) {
	t.Parallel()
	got, _ := observeEvents(t, func(add func(event.Published)) {
		for i := range 3 {
			add(event.Published{ID: fmt.Sprintf("r.root#call-7.%d", i), Kind: event.KindToolProgress, Data: event.Progress{Call: "7", Tool: "t", Done: float64(i)}})
		}
		add(event.Published{ID: "r.root#call-8.0", Kind: event.KindToolProgress, Data: event.Progress{Call: "8", Tool: "t"}})
	})
	if want := []string{"2ms r.root#call-7.2 {7 t 2 0 }", "2ms r.root#call-8.0 {8 t 0 0 }"}; !slices.Equal(got, want) {
		t.Errorf("told:\n%s", strings.Join(got, "\n"))
	}
}

// The end of a run takes along what waits, in order, and waits for nothing.
func TestEndOfARunIsPublishedAtOnce(t *testing.T) {
	t.Parallel()
	got, _ := observeEvents(t, func(add func(event.Published)) {
		add(logEvent("r.root", 9, event.KindAgentFinished))
		<-time.After(publishPause / 5) // of the bubble
		add(logEvent("r.super", 8, event.KindRunFinished))
	})
	if want := []string{"400µs r.root#9.0 <nil>", "400µs r.super#8.0 <nil>"}; !slices.Equal(got, want) {
		t.Errorf("told:\n%s", strings.Join(got, "\n"))
	}
}

// At most waitingMax events wait; a message says how many were dropped.
func TestEventsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	got, logged := observeEvents(t, func(add func(event.Published)) {
		for n := range waitingMax + 3 {
			add(logEvent("r.root", uint64(n+1), event.KindToolStarted))
		}
		add(deltaEvent(1, strings.Repeat("x", mergedTextMax)))
	})
	if len(got) != waitingMax || !strings.Contains(logged, "lost=4") {
		t.Errorf("%d told of %d, and the log says %q", len(got), waitingMax, logged)
	}
	got, _ = observeEvents(t, func(add func(event.Published)) {
		for n := range 3 {
			add(deltaEvent(n, strings.Repeat("x", mergedTextMax/2)))
		}
	})
	if len(got) != 2 {
		t.Errorf("%d events of at most %d bytes each", len(got), mergedTextMax)
	}
}

// No event is published after the end, and waiting events are published before it.
func TestNoEventIsPublishedAfterTheEnd(t *testing.T) {
	t.Parallel()
	var told []string
	synctest.Test(t, func(t *testing.T) {
		tell := newEventPublisher(func(list []event.Published) {
			for _, e := range list {
				told = append(told, e.ID)
			}
		}, slog.New(slog.DiscardHandler))
		tell.add(logEvent("r.root", 1, event.KindModelStarted))
		tell.close()
		tell.add(logEvent("r.root", 2, event.KindModelFinished))
		<-time.After(time.Second) // of the bubble
		synctest.Wait()
	})
	if !slices.Equal(told, []string{"r.root#1.0"}) {
		t.Errorf("told: %q", told)
	}
}
