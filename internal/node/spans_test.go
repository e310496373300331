package node

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/telemetry"
)

// spanReceiver is an OTLP/HTTP receiver that keeps the newest form of each span. One address stands for each node:
// one that is cut off accepts nothing more.
type spanReceiver struct {
	*httptest.Server
	mu      sync.Mutex
	spans   map[string]*receivedSpan // by trace and span id
	cut     map[string]bool
	bodies  []string
	metrics []*metricspb.MetricsData
}

type receivedSpan struct {
	*tracepb.Span
	nodes []string // that sent it
}

func newSpanReceiver(t *testing.T) *spanReceiver {
	t.Helper()
	r := &spanReceiver{spans: map[string]*receivedSpan{}, cut: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.receive(t, w, q) }))
	t.Cleanup(r.Close)
	return r
}

func (r *spanReceiver) receive(t *testing.T, w http.ResponseWriter, q *http.Request) {
	if strings.HasSuffix(q.URL.Path, "/v1/metrics") {
		r.receiveMetrics(t, q)
		return
	}
	node := strings.Trim(strings.TrimSuffix(q.URL.Path, "/v1/traces"), "/")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut[node] {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	body := q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(q.Body); err != nil {
			t.Error(err)
			return
		}
	}
	raw, err := io.ReadAll(body)
	var data tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(raw, &data)
	}
	if err != nil || q.Header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("%s: %v", q.Header, err)
	}
	r.bodies = append(r.bodies, string(raw))
	for _, resource := range data.ResourceSpans {
		if got := attributeText(resource.Resource.Attributes, "service.instance.id"); node != "" && got != node {
			t.Errorf("the node is called %q, not %q", got, node)
		}
		for _, s := range resource.ScopeSpans[0].Spans {
			id := hex.EncodeToString(s.TraceId) + "/" + hex.EncodeToString(s.SpanId)
			if r.spans[id] == nil {
				r.spans[id] = &receivedSpan{}
			}
			if known := r.spans[id]; known.Span != nil && !proto.Equal(known.Span, s) {
				t.Errorf("two spans of one id:\n%s\n%s", known.Span, s)
			}
			r.spans[id].Span, r.spans[id].nodes = s, append(r.spans[id].nodes, node)
		}
	}
}

// receiveMetrics keeps a request with metrics.
func (r *spanReceiver) receiveMetrics(t *testing.T, q *http.Request) {
	raw, err := io.ReadAll(q.Body)
	data := &metricspb.MetricsData{}
	if err == nil && q.Header.Get("Content-Encoding") == "" {
		err = proto.Unmarshal(raw, data)
	}
	if err != nil || q.Header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("%s: %v", q.Header, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.metrics = append(r.metrics, data)
}

// ofRun waits until the run's own span has come and no parent is missing, and returns the spans of the run.
func (r *spanReceiver) ofRun(t *testing.T, run string, ready func([]*receivedSpan) bool) []*receivedSpan {
	t.Helper()
	ctx := testContext(t)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		list := r.list(run)
		if slices.ContainsFunc(list, isRunSpan) && ready(list) {
			return list
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the spans never came:\n%s", describeSpans(list))
		}
	}
}

func (r *spanReceiver) list(run string) (list []*receivedSpan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if attributeText(s.Attributes, "troupe.run") == run {
			list = append(list, &receivedSpan{s.Span, slices.Clone(s.nodes)})
		}
	}
	slices.SortFunc(list, func(a, b *receivedSpan) int { return strings.Compare(spanText(a), spanText(b)) })
	return list
}

func (r *spanReceiver) allBodies() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.bodies, "")
}

func isRunSpan(s *receivedSpan) bool { return strings.HasPrefix(s.Name, "invoke_workflow ") }

func attributeText(list []*commonpb.KeyValue, key string) string {
	for _, a := range list {
		if a.Key == key {
			switch v := a.Value.Value.(type) {
			case *commonpb.AnyValue_StringValue:
				return v.StringValue
			case *commonpb.AnyValue_ArrayValue:
				var texts []string
				for _, one := range v.ArrayValue.Values {
					texts = append(texts, one.GetStringValue())
				}
				return strings.Join(texts, "|")
			case *commonpb.AnyValue_IntValue:
				return fmt.Sprint(v.IntValue)
			case *commonpb.AnyValue_DoubleValue:
				return fmt.Sprint(v.DoubleValue)
			}
		}
	}
	return ""
}

func spanText(s *receivedSpan) string {
	return fmt.Sprintf("%s %s %s", attributeText(s.Attributes, "gen_ai.agent.id"), s.Name, attributeText(s.Attributes, "gen_ai.tool.call.id"))
}

func describeSpans(list []*receivedSpan) string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%s %x<%x %s by %s\n", hex.EncodeToString(s.TraceId)[:6], s.SpanId, s.ParentSpanId, spanText(s), s.nodes)
	}
	return b.String()
}

// brokenLinks names the spans whose parent is missing; one root is allowed.
func brokenLinks(list []*receivedSpan) (broken []string) {
	ids, roots := map[string]bool{}, 0
	for _, s := range list {
		ids[string(s.SpanId)] = true
	}
	for _, s := range list {
		switch {
		case string(s.TraceId) != string(list[0].TraceId):
			broken = append(broken, "another trace: "+spanText(s))
		case len(s.ParentSpanId) == 0:
			if roots++; roots > 1 || !isRunSpan(s) {
				broken = append(broken, "another root: "+spanText(s))
			}
		case !ids[string(s.ParentSpanId)]:
			broken = append(broken, "without its parent: "+spanText(s))
		}
		if s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano == 0 {
			broken = append(broken, "without its time: "+spanText(s))
		}
	}
	return broken
}

func exportTo(r *spanReceiver, content string) func(*Config) {
	return func(c *Config) { c.Telemetry = telemetry.Settings{Endpoint: r.URL, Content: content} }
}

// A run and its children are one trace: run, agents, model calls, tool calls, with the names of the conventions, and
// with what the run was opened with on every span.
//
//behaviour:shows I3 A29
func TestARunIsOneTrace(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{telemetry.ContentNone, telemetry.ContentFull} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			r, content := newSpanReceiver(t), setting == telemetry.ContentFull
			h := startNode(t, t.TempDir(), exportTo(r, setting))
			c := connectClient(t, h)
			id := beginRun(t, c, client.RunRequest{Model: writeScript(t, family), Prompt: "the goal of zebras", Caller: "a caller", MaxTokens: 50_000,
				Constraints: []string{"no zebra harmed"}, Criteria: []string{"three zebras"}})
			waitFinished(t, c, id, spec.Completed)
			list := r.ofRun(t, id, func(list []*receivedSpan) bool { return len(list) == 13 })
			if broken := brokenLinks(list); len(broken) > 0 {
				t.Error(strings.Join(broken, "\n"))
			}
			var names []string
			for _, s := range list {
				names = append(names, spanText(s))
				for key, want := range map[string]string{"troupe.run": id, "gen_ai.conversation.id": id, "troupe.caller": "a caller", "troupe.budget.tokens": "50000"} {
					if got := attributeText(s.Attributes, key); got != want {
						t.Errorf("%s: %s is %q", spanText(s), key, got)
					}
				}
				texts := map[string]string{"troupe.goal": "the goal of zebras", "troupe.constraints": "no zebra harmed", "troupe.criteria": "three zebras"}
				for key, want := range texts {
					if got := attributeText(s.Attributes, key); content && got != want || !content && got != "" {
						t.Errorf("%s: %s is %q", spanText(s), key, got)
					}
				}
				if got := hex.EncodeToString(s.TraceId); got != telemetry.TraceID(id, "") {
					t.Errorf("trace %s", got)
				}
			}
			want := []string{" invoke_workflow assistant ", "root chat script ", "root chat script ", "root execute_tool delegate 1-0", "root execute_tool delegate 1-1",
				"root execute_tool delegate 1-2", "root invoke_agent assistant "}
			for i := range 3 {
				child := fmt.Sprintf("root-1-%d ", i)
				want = append(want, child+"chat script ", child+"invoke_agent surveyor ")
			}
			slices.Sort(want)
			if slices.Sort(names); !slices.Equal(names, want) {
				t.Errorf("spans\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
			}
			if sent := r.allBodies(); strings.Contains(sent, "zebra") != content || strings.Contains(sent, "surveyed second") != content {
				t.Errorf("content is sent: %v", !content)
			}
		})
	}
}

// The trace of a run with children on two nodes is connected and whole after one of them was lost, although that one had
// sent none of its spans yet: of agents that were at work, and of those that had ended.
//
//behaviour:shows I3
func TestTraceIsWholeAfterTheLossOfANode(t *testing.T) {
	t.Parallel()
	r, e := newSpanReceiver(t), startSharedServer(t)
	_, gate, agents := heldFamily(t)
	for name, text := range map[string]string{"boss": "x-troupe:\n  delegates: [keeper, quick]\n", "quick": ""} {
		file := fmt.Sprintf("---\nname: %s\ndescription: An agent.\n%s---\nWork.\n", name, text)
		if err := os.WriteFile(filepath.Join(agents, name+".md"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model := writeScript(t, `
agents:
  boss:
    - calls:
        - {name: delegate, args: {agent: quick, task: "first"}}
        - {name: delegate, args: {agent: keeper, task: "second"}}
        - {name: delegate, args: {agent: keeper, task: "third"}}
    - text: "all: {{last}}"
  quick:
    - text: "at once"
  keeper:
    - calls: [{name: wait}]
    - text: "waited: {{last}}"
`)
	start := func(name string, variables map[string]string) *Node {
		return startNode(t, t.TempDir(), func(c *Config) {
			c.Name, c.Roots, c.ResumeAll, c.LeaseTTL, c.IdleTimeout = name, []string{agents}, true, shard.TTLMin, 20*time.Millisecond
			c.Bus, c.Telemetry.Endpoint = e.ConnectOptions(bus.RoleNode), r.URL+"/"+name
			c.Env = func(key string) string { return variables[key] }
		})
	}
	lost := start("one", map[string]string{"OTEL_BSP_SCHEDULE_DELAY": "600000"})
	kept := start("two", nil)
	waitForSpread(t, lost, kept)
	c := connectClient(t, kept)
	var ids []string
	for len(ids) < 8 { // random ids decide which node has which agent
		id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
		awaitEvents(t, c, id, event.KindToolStarted, 2)
		ids = append(ids, id)
	}
	r.cutOff("one")
	lost.cutNetwork()
	openGate(t, gate)
	for _, id := range ids {
		waitFinished(t, c, id, spec.Completed)
		want := expectedSpans(t, c, id)
		list := r.ofRun(t, id, func(list []*receivedSpan) bool { return len(list) >= len(want) })
		if broken := brokenLinks(list); len(broken) > 0 {
			t.Errorf("%s\n%s", strings.Join(broken, "\n"), describeSpans(list))
		}
		var got []string
		for _, s := range list {
			got = append(got, spanText(s))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("spans\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func (r *spanReceiver) cutOff(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut[node] = true
}

// expectedSpans are the spans that the events of a run call for.
func expectedSpans(t *testing.T, c *client.Client, run string) (want []string) {
	t.Helper()
	add := func(agent, name, call string) { want = append(want, fmt.Sprintf("%s %s %s", agent, name, call)) }
	err := c.Events(testContext(t), run, nil, false, func(e client.Event, _ []byte) error {
		text := func(key string) string {
			var data map[string]any
			if err := json.Unmarshal(e.Data, &data); err != nil {
				t.Error(err)
			}
			value, _ := data[key].(string)
			return value
		}
		switch e.Kind {
		case event.KindRunFinished:
			add("", "invoke_workflow boss", "")
		case event.KindAgentFinished:
			add(e.Agent, "invoke_agent "+text("name"), "")
		case event.KindModelStarted:
			add(e.Agent, "chat script", "")
		case event.KindToolFinished, event.KindDelegationFinished:
			add(e.Agent, "execute_tool "+text("tool"), text("call"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	return want
}
