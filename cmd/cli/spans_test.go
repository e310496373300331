package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// keptSpans are what a receiver of spans got.
type keptSpans struct {
	mu     sync.Mutex
	bodies strings.Builder
	runs   []*tracepb.Span // of runs
}

func (k *keptSpans) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	raw, err := io.ReadAll(q.Body)
	var data tracepb.TracesData
	if err != nil || proto.Unmarshal(raw, &data) != nil || q.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bodies.Write(raw)
	for _, r := range data.ResourceSpans {
		for _, s := range r.ScopeSpans[0].Spans {
			if strings.HasPrefix(s.Name, "invoke_workflow ") {
				k.runs = append(k.runs, s)
			}
		}
	}
}

func isInTrace(s *tracepb.Span, trace, parent string) bool {
	return hex.EncodeToString(s.TraceId) == trace && hex.EncodeToString(s.ParentSpanId) == parent
}

// A run sends spans to the receiver that a flag, a variable or the user's own file names, never to one that the directory
// of the run names. They are in the trace of TRACEPARENT. Without telemetry_content they have no text of people and
// models; secrets they never have.
//
//behaviour:shows I3
func TestSpansOfACommand(t *testing.T) {
	t.Parallel()
	const trace, parent, secret = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "k9-secret-2f81ab77"
	const traceparent = "TRACEPARENT=00-" + trace + "-" + parent + "-01"
	const script = "default: [{calls: [{name: the zebra}, {name: " + secret + "}]}, {text: zebra}]\n"
	const failing = "default: [{error: {class: bad_request, message: a zebra}}]\n"
	const mark = "RECEIVER"
	for name, c := range map[string]struct {
		args, env []string
		own, dir  string // settings files
		script    string
		exit      int
		content   bool
		stderr    string
	}{
		"flag":         {args: []string{"--otlp-endpoint", mark}, env: []string{traceparent}},
		"failed run":   {args: []string{"--otlp-endpoint", mark}, env: []string{traceparent}, script: failing, exit: 7},
		"flags":        {args: []string{"--otlp-endpoint", mark, "--telemetry-content", "full"}, env: []string{traceparent}, content: true},
		"own file":     {own: "otlp_endpoint: " + mark + "\ntelemetry_content: full\n", content: true},
		"own variable": {env: []string{"TROUPE_OTLP_ENDPOINT=" + mark, "TRACEPARENT=zebra"}},
		"variable":     {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + mark, traceparent}},
		"directory":    {dir: "otlp_endpoint: " + mark + "\n", exit: exitUsage, stderr: "otlp_endpoint: only the user can set this"},
		"its content": {args: []string{"--otlp-endpoint", mark}, dir: "telemetry_content: full\n", exit: exitUsage,
			stderr: "telemetry_content: only the user can set this"},
		"no URL":  {args: []string{"--otlp-endpoint", "user:" + secret + "@host"}, exit: exitUsage, stderr: "hint: docs/telemetry.md"},
		"content": {args: []string{"--otlp-endpoint", mark, "--telemetry-content", "all"}, exit: exitUsage, stderr: "none or full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := &keptSpans{}
			r := httptest.NewServer(kept)
			defer r.Close()
			place := func(text string) string { return strings.ReplaceAll(text, mark, r.URL) }
			if c.script == "" {
				c.script = script
			}
			h := newTestHome(t, map[string]string{"s.yaml": c.script, "config/troupe/troupe.yaml": place(c.own), "project/troupe.yaml": place(c.dir)})
			args := []string{"run", "-q", "--dir", "project", "-m", "script/s.yaml", "tell the zebra"}
			for _, a := range c.args {
				args = append(args, place(a))
			}
			cmd := h.command(args...)
			cmd.Env = append(cmd.Env, "SOME_TOKEN="+secret)
			for _, v := range c.env {
				cmd.Env = append(cmd.Env, place(v))
			}
			var stderr strings.Builder
			cmd.Stderr = &stderr
			if code := exitOf(t, cmd.Run()); code != c.exit || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("exit %d, %s", code, &stderr)
			}
			kept.mu.Lock()
			defer kept.mu.Unlock()
			sent := kept.bodies.String()
			if strings.Contains(sent+stderr.String(), secret) || strings.Contains(sent, "zebra") != c.content {
				t.Errorf("%q sent, %s", sent, &stderr)
			}
			if c.exit == exitUsage {
				if sent != "" {
					t.Errorf("%d runs were sent", len(kept.runs))
				}
				return
			}
			if inTrace := slices.Contains(c.env, traceparent); len(kept.runs) != 1 || isInTrace(kept.runs[0], trace, parent) != inTrace {
				t.Errorf("%v", kept.runs)
			}
		})
	}
}

// The settings that a command shows have no credentials of the receiver.
func TestShownEndpointHasNoCredentials(t *testing.T) {
	t.Parallel()
	cmd := newTestHome(t, nil).command("config", "view")
	cmd.Env = append(cmd.Env, "TROUPE_OTLP_ENDPOINT=http://user:hunter2@host:4318/x")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "hunter2") || !strings.Contains(string(out), "http://host:4318/x") {
		t.Errorf("%v\n%s", err, out)
	}
}
