package node

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/throttle"
)

// pacedProvider is a double of a provider that reports rates in the headers that OpenAI documents, and counts its requests.
type pacedProvider struct {
	*httptest.Server

	mu     sync.Mutex
	header map[string]string // of each answer
	refuse bool              // the next request
	times  []time.Time       // of requests
	bodies []string
}

func newPacedProvider(t *testing.T) *pacedProvider {
	p := &pacedProvider{}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *pacedProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.bodies = append(p.bodies, string(body))
	p.times = append(p.times, time.Now())
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	refuse := p.refuse
	p.refuse = false
	p.mu.Unlock()
	if refuse {
		w.Header().Set("Retry-After-Ms", "300")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"type":"rate_limit_error","message":"slow down"}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range []string{`"choices":[{"index":0,"delta":{"role":"assistant","content":"done"},"finish_reason":null}]`, `"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`,
		`"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":5,"total_tokens":55}`} {
		fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"paced\",%s}\n\n", data)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// report has each answer report requests a minute, in the form of OpenAI.
func (p *pacedProvider) report(limit, left int64, refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.header = map[string]string{"x-ratelimit-limit-requests": fmt.Sprint(limit), "x-ratelimit-remaining-requests": fmt.Sprint(left),
		"x-ratelimit-reset-requests": (time.Minute * time.Duration(limit-left) / time.Duration(limit)).String()}
	p.refuse = refuse
}

// most returns the most requests within a time.
func (p *pacedProvider) most(within time.Duration) (most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, from := range p.times {
		n := 0
		for _, at := range p.times[i:] {
			if at.Sub(from) < within {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// useProvider lets a node use the double, with agents that make one call each.
func (p *pacedProvider) useProvider(t *testing.T) func(*Config) {
	agents := t.TempDir()
	if err := os.WriteFile(filepath.Join(agents, "hand.md"), []byte("---\nname: hand\ndescription: Works.\n---\nWork.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(c *Config) {
		c.Roots = []string{agents}
		c.Env = func(v string) string {
			return map[string]string{"OPENAI_BASE_URL": p.URL + "/v1", "OPENAI_API_KEY": "sk-of-the-pace"}[v]
		}
	}
}

// throttleStatus returns the only throttle of a node.
func throttleStatus(t *testing.T, h *Node) throttle.Status {
	t.Helper()
	all := make(chan map[string]throttle.Status, 1)
	h.actorNode.Throttles(func(m map[string]throttle.Status) { all <- m })
	select {
	case m := <-all:
		for _, s := range m {
			return s
		}
		return throttle.Status{}
	case <-time.After(patience):
		t.Fatal("the node does not answer")
		return throttle.Status{}
	}
}

// runMany starts runs and waits until all of them have completed.
func runMany(t *testing.T, h *Node, n int) {
	t.Helper()
	c := connectClient(t, h)
	var ids []string
	for range n {
		ids = append(ids, beginRun(t, c, client.RunRequest{Model: "openai/paced", Agents: h.cfg.Roots[0], Agent: "hand", Prompt: "do a part"}))
	}
	for _, id := range ids {
		waitFinished(t, c, id, spec.Completed)
	}
}

// A rate that a provider reports in the headers of one answer holds on all nodes, is known after all of them were
// started anew, and is shared by them.
//
//behaviour:shows G6
func TestReportedRateHoldsForTheCluster(t *testing.T) {
	t.Parallel()
	p := newPacedProvider(t)
	e := startSharedServer(t)
	use := p.useProvider(t)
	p.report(60, 59, true) // also a refusal reports it
	one, two := startSharedNodeWith(t, e, "one", use), startSharedNodeWith(t, e, "two", use)
	waitForSpread(t, one, two)
	runMany(t, one, 1)
	for _, h := range []*Node{one, two} {
		waitUntil(t, "the node knows the rate", func() bool { return throttleStatus(t, h).Requests == 60 })
	}
	for _, h := range []*Node{one, two} {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	three, four := startSharedNodeWith(t, e, "three", use), startSharedNodeWith(t, e, "four", use)
	for _, h := range []*Node{three, four} {
		waitUntil(t, "a new node knows the rate", func() bool { return throttleStatus(t, h).Requests == 60 })
	}
	waitForSpread(t, three, four)
	<-time.After(2 * time.Second) // the throttles hear of a new number of nodes after a second
	p.mu.Lock()
	p.times = nil
	p.mu.Unlock()
	runMany(t, three, 8)
	// Each node has 30 in a minute: one at once, then one every two seconds.
	if n := p.most(5 * time.Second); n > 8 {
		t.Errorf("%d requests within 5 s: the nodes may send one each, and one a second together", n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if took := p.times[len(p.times)-1].Sub(p.times[0]); len(p.times) != 8 || took < 5*time.Second {
		t.Errorf("%d requests in %v", len(p.times), took)
	}
}

// A node that is alone creates the bucket of notices when a provider reports a rate, and knows the rate after a restart.
func TestReportedRateOutlivesANodeThatIsAlone(t *testing.T) {
	t.Parallel()
	p, state := newPacedProvider(t), t.TempDir()
	p.report(60, 59, false)
	start := func() *Node { return startNode(t, state, p.useProvider(t)) }
	h := start()
	js, err := jetstream.New(h.logConn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.KeyValue(t.Context(), h.names.ThrottleBucket()); !errors.Is(err, jetstream.ErrBucketNotFound) {
		t.Errorf("there is a bucket of notices without a notice: %v", err)
	}
	runMany(t, h, 1)
	waitUntil(t, "the rate is kept", func() bool {
		b, err := js.KeyValue(t.Context(), h.names.ThrottleBucket())
		if err != nil {
			return false
		}
		status, err := b.Status(t.Context())
		return err == nil && status.Values() > 0
	})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = start()
	waitUntil(t, "the node knows the rate again", func() bool { return throttleStatus(t, h).Requests == 60 })
}

// A setting of one node holds on all nodes, and no header raises it.
//
//behaviour:shows G6
func TestSettingLimitsWhatHeadersReport(t *testing.T) {
	t.Parallel()
	p := newPacedProvider(t)
	e := startSharedServer(t)
	use := p.useProvider(t)
	p.report(100_000, 99_000, false)
	one := startSharedNodeWith(t, e, "one", func(c *Config) {
		use(c)
		c.RequestRates = throttle.RateTable{"openai/paced": 120, "openai": 3}
	})
	two := startSharedNodeWith(t, e, "two", use)
	waitForSpread(t, one, two)
	for throttleStatus(t, one).Requests != 120 { // a node publishes its settings once it uses the model: random ids decide where an agent lives
		runMany(t, one, 1)
	}
	for _, h := range []*Node{one, two} {
		waitUntil(t, "the node knows the setting", func() bool { return throttleStatus(t, h).Requests == 120 })
	}
	for _, text := range []string{"-1", "99999999999999999999", "0", "lots", "1e9", ""} { // a hostile server
		p.mu.Lock()
		p.header = map[string]string{"x-ratelimit-limit-requests": text, "x-ratelimit-remaining-requests": text, "x-ratelimit-reset-requests": text}
		p.mu.Unlock()
		runMany(t, one, 1)
		if n := throttleStatus(t, one).Requests; n != 120 {
			t.Errorf("%q: %d requests a minute", text, n)
		}
	}
}

// A node does not start with rates that have no meaning.
func TestRatesWithoutAMeaningStartNoNode(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{RequestRates: throttle.RateTable{"openai": 0}}, {TokenRates: throttle.RateTable{"/": 5}}} {
		c.StateDir, c.StartServer = filepath.Join(t.TempDir(), "state"), embedded.StartServer
		if h, err := Start(t.Context(), c); err == nil {
			t.Errorf("%+v: it starts", c.RequestRates)
			_ = h.Close()
		}
	}
}
