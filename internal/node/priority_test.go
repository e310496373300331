package node

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/throttle"
)

// A run of high priority does not wait for those of low priority that came before it, and those are served, too. The
// priority is in the record of the run, so it is known to the node that takes the run over.
//
//behaviour:shows G6
func TestRunOfHighPriorityGoesFirst(t *testing.T) {
	t.Parallel()
	p := newPacedProvider(t)
	use := p.useProvider(t)
	h := startNode(t, t.TempDir(), func(c *Config) {
		use(c)
		c.RequestRates = throttle.RateTable{"openai": 40} // two at once, then one in 1.5 s
	})
	c := connectClient(t, h)
	begin := func(prompt, priority string) string {
		return beginRun(t, c, client.RunRequest{Model: "openai/paced", Agents: h.cfg.Roots[0], Agent: "hand", Prompt: prompt, Priority: priority})
	}
	var ids []string
	for range 6 {
		ids = append(ids, begin("the-low-one", "low"))
	}
	waitUntil(t, "the minute is used up", func() bool { return throttleStatus(t, h).Waiting >= 3 })
	ids = append(ids, begin("the-high-one", "high"))
	for _, id := range ids {
		waitFinished(t, c, id, spec.Completed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.bodies, func(body string) bool { return strings.Contains(body, "the-high-one") })
	if len(p.bodies) != 7 || at < 0 || at == 6 {
		t.Errorf("the run of high priority was number %d of %d", at+1, len(p.bodies))
	}
	if d, err := c.Describe(t.Context(), ids[6]); err != nil || d.Description.Priority != "high" {
		t.Errorf("%+v, %v", d.Description, err)
	}
}

// A request over HTTP has a priority, as one over NATS; another word is refused.
func TestPriorityOverHTTP(t *testing.T) {
	t.Parallel()
	h, w := startWeb(t)
	c := connectClient(t, h)
	id := client.NewID()
	body := func(priority string) string {
		return fmt.Sprintf(`{"run_id":%q,"prompt":"all of it","model":%q,"priority":%q}`, id, writeScript(t, family), priority)
	}
	code, _, refused := w.send(w.request("POST", "/api/v1/runs", body("urgent")))
	if code != http.StatusBadRequest || !strings.Contains(string(refused), `priority is \"urgent\"`) || !strings.Contains(string(refused), "write high, normal or low") {
		t.Errorf("%d %s", code, refused)
	}
	w.post("/api/v1/runs", body("low"), http.StatusCreated, nil)
	waitFinished(t, c, id, spec.Completed)
	if d, err := c.Describe(t.Context(), id); err != nil || d.Description.Priority != "low" {
		t.Errorf("%+v, %v", d.Description, err)
	}
}
