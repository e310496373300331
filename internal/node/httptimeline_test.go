package node

import (
	"net/http"
	"testing"

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
