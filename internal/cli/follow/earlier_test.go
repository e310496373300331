package follow

import (
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
)

func eventAt(ts string) (e client.Event) {
	e.TS = ts
	return e
}

// The events from before a run was continued are counted in one line; those after are not among them.
func TestEarlierEvents(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	e := earlierEvents{newFrom: start, command: "troupe events r"}
	for ts, want := range map[string]bool{"2026-01-02T03:04:05.677Z": true, "2026-01-01T00:00:00Z": true, "2026-01-02T03:04:05.678Z": false, "2026-01-02T03:04:06Z": false, "": false} {
		if got := e.take(eventAt(ts)); got != want {
			t.Errorf("%q: %v", ts, got)
		}
	}
	if line := e.line(); line != "… 2 earlier events; troupe events r shows all, -v prints them here" {
		t.Error(line)
	}
	if line := e.line(); line != "" {
		t.Errorf("once more: %s", line)
	}
	if all := new(earlierEvents); all.take(eventAt("2026-01-01T00:00:00Z")) {
		t.Error("an event is left out of a new run")
	}
}
