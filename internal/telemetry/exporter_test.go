package telemetry

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/supervisor"
)

// safeLog is a log that may be read while it is written.
type safeLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// openTestRun appends the first entry of a run.
func openTestRun(t *testing.T, logs mailbox.Store, o supervisor.Opened) {
	t.Helper()
	body, err := mailbox.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: o.Run, Kind: "opened", Body: body}}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	logs.Append(t.Context(), mailbox.At(o.Run, mailbox.Super), raw, func(_ uint64, err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func startTestExporter(t *testing.T, endpoint string, variables map[string]string, change ...func(*Config)) (*Exporter, *safeLog) {
	t.Helper()
	logs, text := memory.New(memory.Config{}), &safeLog{}
	t.Cleanup(func() {
		if err := logs.Close(); err != nil {
			t.Error(err)
		}
	})
	openTestRun(t, logs, supervisor.Opened{Run: "r", Goal: "the goal", Root: "boss", Definitions: []supervisor.Definition{{Name: "boss"}}})
	cfg := Config{Settings: Settings{Endpoint: endpoint}, Env: func(key string) string { return variables[key] }, Node: "n", Version: "v", Logs: logs,
		Mask: redact.New(redact.Config{}), Logger: slog.New(slog.NewTextHandler(text, nil))}
	for _, c := range change {
		c(&cfg)
	}
	x, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return x, text
}

// agentEvents are the events of an agent that works for some model calls.
func agentEvents(agent string, calls int) (list []event.Published) {
	n := uint64(0)
	add := func(kind event.Kind, data any) {
		n++
		list = append(list, event.Published{ID: fmt.Sprintf("r.%s#%d.0", agent, n), TS: event.FormatStamp(1_700_000_000_000 + int64(n)), Run: "r", Agent: agent, Seq: n, Kind: kind, Data: data})
	}
	add(event.KindAgentStarted, event.AgentStarted{Name: "boss", Model: "openai/m", Goal: "the goal"})
	for i := range calls {
		add(event.KindModelStarted, event.ModelStarted{Model: "openai/m", Reservation: i + 1})
		add(event.KindModelFinished, event.ModelFinished{Model: "openai/m", Stop: "end"})
	}
	add(event.KindAgentFinished, event.AgentFinished{Name: "boss", Reason: "completed"})
	return list
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("never: " + what)
		}
	}
}

// A receiver that never answers holds up nothing: spans beyond the limits are dropped and counted, the operator hears of
// it once, and the end of the node does not wait for it.
//
//behaviour:shows I3
func TestDeadReceiverCostsNothing(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer dead.Close()
	defer close(release)
	x, logged := startTestExporter(t, dead.URL, map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "100", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "10",
		"OTEL_BSP_SCHEDULE_DELAY": "1", "OTEL_EXPORTER_OTLP_TIMEOUT": "20"})
	began := time.Now()
	for i := range 1000 {
		for _, e := range agentEvents(fmt.Sprint("a", i), 9) {
			x.Observe(e)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("10,000 spans took %v", took)
	}
	s := x.Stats()
	if s.Waiting > 100 || s.Dropped < 10_000-200 || s.Exported != 0 {
		t.Errorf("%+v", s)
	}
	waitFor(t, "a line about it", func() bool { return strings.Contains(logged.String(), "spans are dropped") })
	began = time.Now()
	x.Close()
	x.Close() // a node may be closed twice
	if took := time.Since(began); took > closeMax+10*time.Second {
		t.Errorf("the end took %v", took)
	}
	if n := strings.Count(logged.String(), "spans are dropped"); n != 1 {
		t.Errorf("%d lines:\n%s", n, logged)
	}
	if s := x.Stats(); s.Exported != 0 || s.Dropped+int64(s.Waiting) != 10_000 {
		t.Errorf("%+v", s)
	}
}

// A receiver that is busy gets the same batch again, and what it rejects counts as dropped.
func TestBusyReceiverGetsSpansAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bodies []string
	r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		raw, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if bodies = append(bodies, string(raw)); len(bodies) == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		inner := protowire.AppendVarint(protowire.AppendTag(nil, rejectedSpansField, protowire.VarintType), 1)
		if _, err := w.Write(protowire.AppendBytes(protowire.AppendTag(nil, partialSuccessField, protowire.BytesType), inner)); err != nil {
			t.Error(err)
		}
		if q.Header.Get("Authorization") != "Bearer secret-1" || q.URL.Path != "/v1/traces" {
			t.Errorf("%s %s", q.URL, q.Header)
		}
	}))
	defer r.Close()
	x, _ := startTestExporter(t, r.URL, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret-1"})
	defer x.Close()
	for _, e := range agentEvents("root", 2) {
		x.Observe(e)
	}
	waitFor(t, "2 of 3 spans", func() bool { s := x.Stats(); return s.Exported == 2 && s.Dropped == 1 })
	mu.Lock()
	defer mu.Unlock()
	if len(bodies) != 2 || bodies[0] != bodies[1] {
		t.Errorf("%d bodies", len(bodies))
	}
	var data tracepb.TracesData
	if err := proto.Unmarshal([]byte(bodies[0]), &data); err != nil {
		t.Fatal(err)
	}
	if n := len(data.ResourceSpans[0].ScopeSpans[0].Spans); n != 3 {
		t.Errorf("%d spans", n)
	}
}

// Spans whose run is not known are dropped, and a run that its starter does not sample has none.
func TestUnknownAndUnsampledRuns(t *testing.T) {
	t.Parallel()
	r := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("spans were sent") }))
	defer r.Close()
	x, _ := startTestExporter(t, r.URL, nil, func(c *Config) {
		openTestRun(t, c.Logs, supervisor.Opened{Run: "unsampled", Root: "boss", Trace: "00-" + strings.Repeat("1", 32) + "-" + strings.Repeat("2", 16) + "-00"})
	})
	for _, run := range []string{"unsampled", "unknown"} {
		for _, e := range agentEvents("root", 1) {
			e.Run = run
			x.Observe(e)
		}
	}
	waitFor(t, "the end of the queue", func() bool { s := x.Stats(); return s.Waiting == 0 && s.Dropped == 2 })
	x.Close()
}

// A receiver that sends the spans elsewhere, answers without end, has another certificate or breaks the protocol gets
// no second chance to read the credentials, and the log stays short and without them.
//
//behaviour:shows I3
func TestAttackReceivers(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { t.Errorf("%s was followed: %v", q.URL, q.Header) }))
	t.Cleanup(other.Close)
	raw := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, answer) // the exporter may have closed the connection
			_ = c.Close()
		}
	}
	for name, c := range map[string]struct {
		receive  http.HandlerFunc
		exported int64
	}{
		"redirect":      {receive: http.RedirectHandler(other.URL, http.StatusTemporaryRedirect).ServeHTTP},
		"long status":   {receive: raw("HTTP/1.1 400 " + strings.Repeat("\x1b[31m", 1<<20) + "\r\n\r\n")},
		"no HTTP":       {receive: raw(strings.Repeat("x", 1<<20))},
		"endless":       {receive: raw("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n" + strings.Repeat("x", 4*answerBytesMax)), exported: 3},
		"broken answer": {receive: raw("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x0a\xff\xff\xff"), exported: 3},
		"certificate":   {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r *httptest.Server
			if c.receive != nil {
				r = httptest.NewServer(c.receive)
			} else {
				r = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("spans were sent") }))
				r.Config.ErrorLog = log.New(io.Discard, "", 0)
				r.StartTLS()
			}
			defer r.Close()
			x, logged := startTestExporter(t, strings.Replace(r.URL, "://", "://user:hunter2@", 1), map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20hunter2"})
			for _, e := range agentEvents("root", 2) {
				x.Observe(e)
			}
			x.Close()
			if s := x.Stats(); s.Exported != c.exported || s.Exported+s.Dropped != 3 {
				t.Errorf("%+v", s)
			}
			if text := logged.String(); strings.Contains(text, "hunter2") || len(text) > 1000 || (c.exported == 0) == (text == "") {
				t.Errorf("the log: %.2000s", text)
			}
		})
	}
}
