package node

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

// A run whose provider has no request left in this minute waits for the throttle, which the timeline shows.
func TestWaitForAThrottleIsInTheTimelineOverHTTP(t *testing.T) {
	t.Parallel()
	p := newPacedProvider(t)
	p.report(20, 0, false) // one more in 3 s
	h, w := startWeb(t, p.useProvider(t))
	runMany(t, h, 1)
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Prompt: "go", Model: "openai/paced", Agent: "hand", Agents: h.cfg.Roots[0]})
	waitFinished(t, c, id, spec.Completed)
	var spans []term.Span
	w.get("/api/v1/runs/"+id+"/timeline", http.StatusOK, &spans)
	waits := 0
	for _, s := range spans {
		if s.Kind == term.WaitingSpan && s.Name == "throttle" && s.EndMS > s.StartMS && !s.Open {
			waits++
		}
	}
	if waits == 0 {
		t.Errorf("no wait for a throttle: %+v", spans)
	}
}

// While no node works on a run, its spans end at its newest event: they do not grow with the time of the request.
func TestTimelineOfAnInterruptedRunStandsStill(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	first := startNode(t, state)
	c := connectClient(t, first)
	run := beginRun(t, c, client.RunRequest{Prompt: "think", Model: writeScript(t, "default: [{text: late, delay: 10m}]")})
	awaitEvents(t, c, run, event.KindModelStarted, 1)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_, w := startWebIn(t, state, func(c *Config) { c.NoActors = true })
	var spans, later []term.Span
	w.get("/api/v1/runs/"+run+"/timeline", http.StatusOK, &spans)
	begun := time.Now()
	waitUntil(t, "the clock has moved", func() bool { return time.Since(begun) > 5*time.Millisecond })
	w.get("/api/v1/runs/"+run+"/timeline", http.StatusOK, &later)
	if len(spans) == 0 || !slices.Equal(spans, later) {
		t.Errorf("first %+v, then %+v", spans, later)
	}
}
