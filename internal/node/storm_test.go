package node

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/mailbox"
)

// stormProvider is a double of a provider that refuses all requests for a while, from its nth
// request on, and counts its requests.
type stormProvider struct {
	*httptest.Server
	from  int
	lasts time.Duration

	mu       sync.Mutex
	requests int
	began    time.Time // of the storm
	ended    time.Time
	during   int       // requests while it refused everybody
	heard    time.Time // when all nodes were seen to know of it
	late     int       // of those, after every node has had time to learn of it
	flying   int
	most     int // requests in progress when it began
}

// stormHeard is how long after all nodes have learned of the storm a request may still have
// been in flight: this machine may be slow.
const stormHeard = 2500 * time.Millisecond

// thinks is how long an answer takes.
const thinks = 40 * time.Millisecond

func (p *stormProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	left := p.countArrival()
	defer p.countDeparture()
	if left > 0 {
		w.Header().Set("Retry-After-Ms", fmt.Sprint(left.Milliseconds()+1))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"type":"rate_limit_error","message":"slow down"}}`)
		return
	}
	select {
	case <-time.After(thinks):
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(delta, finish string) {
		fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"storm\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
	}
	if strings.Contains(string(body), "the-whole-task") && !strings.Contains(string(body), `"role":"assistant"`) {
		for i := range 4 {
			say(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%d","type":"function","function":{"name":"delegate","arguments":"{\"agent\":\"hand\",\"task\":\"a part\"}"}}]}`, i, i), "null")
		}
		say(`{}`, `"tool_calls"`)
	} else {
		say(`{"role":"assistant","content":"done"}`, "null")
		say(`{}`, `"stop"`)
	}
	fmt.Fprint(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"storm\",\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":5,\"total_tokens\":55}}\n\ndata: [DONE]\n\n")
}

// countArrival counts a request, and says for how long yet everybody is refused.
func (p *stormProvider) countArrival() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	p.flying++
	now := time.Now()
	if p.requests == p.from {
		p.began, p.ended, p.most = now, now.Add(p.lasts), p.flying
	}
	if p.began.IsZero() || now.After(p.ended) {
		return 0
	}
	p.during++
	if !p.heard.IsZero() && now.Sub(p.heard) > stormHeard {
		p.late++
	}
	return p.ended.Sub(now)
}

// awaitClosedGates waits until the throttles of all nodes are closed, and notes when that was.
func (p *stormProvider) awaitClosedGates(ctx context.Context, hosts []*Node) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for !allShut(ctx, hosts) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	p.mu.Lock()
	p.heard = time.Now()
	p.mu.Unlock()
}

// allShut reports whether each node has a gate that is closed.
func allShut(ctx context.Context, hosts []*Node) bool {
	return !slices.ContainsFunc(hosts, func(h *Node) bool {
		all := make(chan map[string]throttle.Status, 1)
		h.actorNode.Throttles(func(m map[string]throttle.Status) { all <- m })
		select {
		case m := <-all:
			return !slices.ContainsFunc(slices.Collect(maps.Values(m)), func(s throttle.Status) bool { return s.ClosedMS > 0 })
		case <-ctx.Done():
			return true
		}
	})
}

func (p *stormProvider) countDeparture() {
	p.mu.Lock()
	p.flying--
	p.mu.Unlock()
}

// startSharedNodeWith starts a node on a shared server that is like those of join except for the
// change. None of them dies.
func startSharedNodeWith(t *testing.T, e *embedded.Server, name string, change func(*Config)) *Node {
	t.Helper()
	return startNode(t, t.TempDir(), func(c *Config) {
		c.Name, c.ResumeAll, c.LeaseTTL = name, true, shard.TTLDefault
		c.Bus = e.ConnectOptions(bus.RoleNode)
		change(c)
	})
}

// TestRefusalStormPausesAllNodesAndEndsNoRun: 60 agents on three nodes work with one
// key. The provider refuses all requests for ten seconds: requests in progress are refused,
// no other request is made in vain, and all agents complete. No request is made without its
// own reservation (G6, P21).
//
//behaviour:shows G6
func TestRefusalStormPausesAllNodesAndEndsNoRun(t *testing.T) {
	t.Parallel()
	const runs = 12
	p := &stormProvider{from: 20, lasts: 10 * time.Second}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	agents := t.TempDir()
	for name, text := range map[string]string{"boss": "---\nname: boss\ndescription: Delegates.\nx-troupe:\n  delegates: [hand]\n---\nDelegate.\n",
		"hand": "---\nname: hand\ndescription: Works.\n---\nWork.\n"} {
		if err := os.WriteFile(filepath.Join(agents, name+".md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := startSharedServer(t)
	var hosts []*Node
	for _, name := range []string{"one", "two", "three"} {
		hosts = append(hosts, startSharedNodeWith(t, e, name, func(c *Config) {
			c.Roots = []string{agents}
			c.Env = func(v string) string {
				return map[string]string{"OPENAI_BASE_URL": p.URL + "/v1", "OPENAI_API_KEY": "sk-of-the-storm"}[v]
			}
		}))
	}
	waitForSpread(t, hosts...)
	c := connectClient(t, hosts[0])
	go p.awaitClosedGates(t.Context(), hosts)
	began := time.Now()
	var ids []string
	for range runs {
		ids = append(ids, beginRun(t, c, client.RunRequest{Model: "openai/storm", Agents: agents, Agent: "boss", Prompt: "the-whole-task"}))
	}
	attempts, waits := 0, 0
	for _, id := range ids {
		info := waitFinished(t, c, id, spec.Completed)
		if info.Result.Budget.Unknown != 0 || info.Result.Budget.Overrun != 0 {
			t.Errorf("run %s: %+v", id, info.Result.Budget)
		}
		leases := map[string]int{}
		for at, kinds := range logKinds(t, hosts[0], id) {
			if at == mailbox.Super {
				continue
			}
			for _, kind := range kinds {
				switch kind {
				case "replied", "failed":
					attempts++
					leases[at]++
				case "throttled":
					waits++
				}
			}
		}
		if len(leases) != 5 {
			t.Errorf("run %s has %d agents that asked a model", id, len(leases))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.Logf("%d agents on 3 nodes, %d requests in %v; a storm of %v: %d under way when it began, %d refused in all, %d of them more than %v later; %d leases came back unused",
		5*runs, p.requests, time.Since(began).Round(time.Millisecond), p.lasts, p.most, p.during, p.late, stormHeard, waits)
	p.checkRequests(t, attempts, len(hosts))
}

// checkRequests reports requests that were made in vain. The caller holds mu.
func (p *stormProvider) checkRequests(t *testing.T, attempts, nodes int) {
	t.Helper()
	if p.requests != attempts {
		t.Errorf("%d requests for %d attempts under leases", p.requests, attempts)
	}
	if p.began.IsZero() || p.heard.IsZero() || p.ended.Sub(p.heard) < stormHeard {
		t.Errorf("a storm from %v to %v; that all nodes knew of it was seen at %v", p.began, p.ended, p.heard)
	}
	if p.late > 0 {
		t.Errorf("%d requests were sent to a provider that had said to wait", p.late)
	}
	if p.during > p.most+nodes*10 {
		t.Errorf("%d were refused, %d were under way", p.during, p.most)
	}
}

// closedFor returns for how long a gate of a node is closed.
func closedFor(t *testing.T, h *Node, name string) int64 {
	t.Helper()
	all := make(chan map[string]throttle.Status, 1)
	h.actorNode.Throttles(func(m map[string]throttle.Status) { all <- m })
	select {
	case m := <-all:
		return m[name].ClosedMS
	case <-time.After(patience):
		t.Fatal("the node does not answer")
		return 0
	}
}

// A rate limit that one node meets holds on the other nodes, also on one that joins later;
// and then for its remaining time, by the broker's clock.
//
//behaviour:shows G6
func TestRateLimitHoldsOnEveryNode(t *testing.T) {
	t.Parallel()
	const name = "00112233445566778899aabbccddeeff"
	e := startSharedServer(t)
	one, two := startSharedNode(t, e, "one", shard.TTLDefault), startSharedNode(t, e, "two", shard.TTLDefault)
	one.throttles.queueNotice(name, throttle.Notice{PauseMS: 120_000, Why: throttle.Limited})
	waitUntil(t, "the other node knows", func() bool { return closedFor(t, two, name) > 0 })
	if ms := closedFor(t, two, name); ms < 60_000 || ms > 121_000 {
		t.Errorf("closed for %d ms", ms)
	}
	waitUntil(t, "some of it is over", func() bool { return closedFor(t, two, name) < 118_000 })
	three := startSharedNode(t, e, "three", shard.TTLDefault)
	waitUntil(t, "the newcomer knows", func() bool { return closedFor(t, three, name) > 0 })
	if ms := closedFor(t, three, name); ms > 119_500 {
		t.Errorf("closed for %d ms on the newcomer: a pause does not begin anew", ms)
	}
	one.throttles.queueNotice("not a name", throttle.Notice{PauseMS: 1})
}
