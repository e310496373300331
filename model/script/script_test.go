package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
)

const play = `
agents:
  coordinator:
    - text: I ask.
      calls:
        - {name: delegate, args: {agent: historian, task: "find <{{task}}>", depth: 2}}
        - {name: broken, args: '{"path": '}
        - name: list
    - text: "Done: {{last}} / {{result.0}} / {{unknown}}"
  historian:
    - {text: old, usage: {input_tokens: 7, output_tokens: 3, cache_read_input_tokens: 2}}
default:
  - text: "{{agent}} {{n}} {{user}}"
`

func parseScript(t *testing.T, text string) *script.Script {
	t.Helper()
	s, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func userMessage(text string) model.Message { return model.Message{Role: model.User, Text: text} }

func askRequest(messages ...model.Message) model.Request {
	return model.Request{Messages: messages, MaxOutput: 4096}
}

func TestRepliesFollowTheTranscript(t *testing.T) {
	c := parseScript(t, play).Client("coordinator")
	var deltas []string
	got, err := c.Complete(t.Context(), askRequest(userMessage("truth")), func(d model.Delta) { deltas = append(deltas, d.Text) })
	if err != nil {
		t.Fatal(err)
	}
	want := []model.ToolCall{
		{Name: "delegate", Args: `{"agent":"historian","depth":2,"task":"find <truth>"}`},
		{Name: "broken", Args: `{"path": `},
		{Name: "list", Args: "{}"},
	}
	if diff := cmp.Diff(want, got.Message.Calls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"I ", "ask."}, deltas); diff != "" {
		t.Error(diff)
	}
	if got.Stop != model.StopTools || !got.UsageKnown || got.Usage.Input != 2 || got.Usage.Output == 0 {
		t.Errorf("stop %q, usage %+v", got.Stop, got.Usage)
	}

	tools := model.Message{Role: model.ToolRole, Results: []model.ToolResult{{Text: "a"}, {Text: "b {{task}}"}}}
	dead := model.Message{Role: model.Assistant, Text: "x", Tombstone: true}
	got, err = c.Complete(t.Context(), askRequest(userMessage("truth"), dead, got.Message, tools), nil)
	if err != nil || got.Message.Text != "Done: b {{task}} / a / {{unknown}}" || got.Stop != model.StopEnd {
		t.Errorf("%q %q %v", got.Message.Text, got.Stop, err)
	}
}

func TestAgentIsNamedByTheFirstLineOfTheSystemPrompt(t *testing.T) {
	c := parseScript(t, play).Client("")
	for system, want := range map[string]string{
		"agent: historian\nYou dig.":  "old",
		"You dig.\nagent: historian":  " 0 hello",
		"agent:  nobody \nwhatever":   "nobody 0 hello",
		"agents: historian":           " 0 hello",
		"agent: historian of the sea": "historian of the sea 0 hello",
	} {
		req := askRequest(userMessage("hello"))
		req.System = system
		got, err := c.Complete(t.Context(), req, nil)
		if err != nil || got.Message.Text != want {
			t.Errorf("%q: %q, %v; want %q", system, got.Message.Text, err, want)
		}
	}
}

func TestRequestBeyondTheScriptGetsTheEndText(t *testing.T) {
	said := model.Message{Role: model.Assistant, Text: "x"}
	req := askRequest(userMessage("a"), said, userMessage("b"), said, userMessage("c"))
	got, err := parseScript(t, "default: [{text: once}]").Client("").Complete(t.Context(), req, nil)
	if err != nil || got.Message.Text != script.EndText {
		t.Errorf("%q, %v", got.Message.Text, err)
	}
	got, err = parseScript(t, "{repeat: true, default: [{text: once}]}").Client("").Complete(t.Context(), req, nil)
	if err != nil || got.Message.Text != "once" {
		t.Errorf("%q, %v", got.Message.Text, err)
	}
}

func TestClosingTurnMakesNoCalls(t *testing.T) {
	s := parseScript(t, `{default: [{calls: [{name: a}]}, {text: so far, calls: [{name: a}]}]}`)
	for n, want := range []string{script.ClosingText, "so far"} {
		req := askRequest(userMessage("a"))
		for range n {
			req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Text: "x"}, userMessage("b"))
		}
		req.NoTools = true
		got, err := s.Client("").Complete(t.Context(), req, nil)
		if err != nil || got.Message.Text != want || got.Message.Calls != nil || got.Stop != model.StopEnd {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestFailures(t *testing.T) {
	s := parseScript(t, `
default:
  - text: after the storm
    error: {class: rate_limit, status: 429, retry_after: 2s, unbilled: true, times: 2}
`)
	c := s.Client("")
	for range 2 {
		got, err := c.Complete(t.Context(), askRequest(userMessage("a")), nil)
		var e *model.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		want := model.Error{Class: model.RateLimit, Status: 429, RetryAfter: 2 * time.Second, Unbilled: true, Message: "scripted"}
		if diff := cmp.Diff(want, *e); diff != "" {
			t.Error(diff)
		}
		if got.Message.Text != "" || got.UsageKnown {
			t.Errorf("%+v", got)
		}
	}
	if got, err := c.Complete(t.Context(), askRequest(userMessage("a")), nil); err != nil || got.Message.Text != "after the storm" {
		t.Errorf("third: %+v, %v", got, err)
	}
	if _, err := c.Complete(t.Context(), askRequest(userMessage("another request")), nil); err == nil {
		t.Error("another request has its own count")
	}
}

func TestScriptedReplyCanBeCutOff(t *testing.T) {
	s := parseScript(t, `
agents:
  call: [{text: whole, cut: true, calls: [{name: a, args: {x: 1}}, {name: b, args: {path: long.txt}}]}]
  text: [{text: "half of this", cut: true}]
  limit: [{text: whole, cut: true, stop: max_output, calls: [{name: b, args: {path: long.txt}}]}]
  failed: [{text: "half of this", cut: true, error: {class: overload}}]
`)
	complete := func(name string) (model.Reply, *model.Error) {
		got, err := s.Client(name).Complete(t.Context(), askRequest(userMessage("a")), nil)
		var e *model.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		return got, e
	}
	got, err := complete("call")
	if err == nil || err.Class != model.Network || len(got.Message.Calls) != 2 || got.UsageKnown {
		t.Fatalf("%+v, %v", got, err)
	}
	if c := got.Message.Calls; c[0].Cut || !c[1].Cut || json.Valid([]byte(c[1].Args)) || c[1].Args == "" {
		t.Errorf("%+v", c)
	}
	if got, err = complete("text"); err == nil || got.Message.Text != "half o" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = complete("limit"); err != nil || got.Stop != model.StopMaxOutput || !got.Message.Calls[0].Cut || !got.UsageKnown {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = complete("failed"); err == nil || err.Class != model.Overload || got.Message.Text != "half o" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOutputStaysUnderTheLimit(t *testing.T) {
	s := parseScript(t, `{default: [{text: "0123456789é", calls: [{name: a, args: {x: 1}}, {name: b, args: {path: long.txt}}]}]}`)
	for limit := int64(1); limit < 20; limit++ {
		req := askRequest(userMessage("a"))
		req.MaxOutput = limit
		got, err := s.Client("").Complete(t.Context(), req, nil)
		if err != nil || got.Usage.Output > limit {
			t.Fatalf("limit %d: %+v, %v", limit, got, err)
		}
		whole := len(got.Message.Calls) == 2 && !got.Message.Calls[1].Cut
		if whole == (got.Stop == model.StopMaxOutput) {
			t.Errorf("limit %d: %+v", limit, got)
		}
		for _, c := range got.Message.Calls {
			if c.Cut == json.Valid([]byte(c.Args)) {
				t.Errorf("limit %d: %+v", limit, c)
			}
		}
	}
}

func TestCancelWhileStreaming(t *testing.T) {
	s := parseScript(t, `{default: [{text: "one two three", pace: 1ms}, {text: never, delay: 1h}]}`)
	ctx, cancel := context.WithCancel(t.Context())
	got, err := s.Client("").Complete(ctx, askRequest(userMessage("a")), func(d model.Delta) {
		if d.Text == "two " {
			cancel()
		}
	})
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Aborted || got.Message.Text != "one two " || got.UsageKnown {
		t.Errorf("%+v, %v", got, err)
	}
	said := model.Message{Role: model.Assistant, Text: "x"}
	if _, err := s.Client("").Complete(ctx, askRequest(userMessage("a"), said, userMessage("b")), nil); !errors.As(err, &e) {
		t.Error(err)
	}
}

func TestReportedUsage(t *testing.T) {
	c := parseScript(t, play+`
  - {text: a, no_usage: true}
`).Client("")
	req := askRequest(userMessage("a"))
	req.System = "agent: historian"
	got, err := c.Complete(t.Context(), req, nil)
	if diff := cmp.Diff(model.Usage{Input: 7, Output: 3, CacheRead: 2}, got.Usage); diff != "" || err != nil {
		t.Error(diff, err)
	}
	got, err = c.Complete(t.Context(), askRequest(userMessage("a"), model.Message{Role: model.Assistant}, userMessage("b")), nil)
	if err != nil || got.UsageKnown {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBadScripts(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "EOF",
		"nothing: here":                          "nothing",
		"repeat: true":                           "neither agents, ids nor default",
		"default: [{tekst: a}]":                  "tekst",
		"default: [{delay: 5}]":                  "not a duration",
		"default: [{delay: -5s}]":                "not a duration",
		"default: [{stop: never}]":               "unknown stop",
		"default: [{error: {}}]":                 "unknown error class",
		"default: [{usage: {input_tokens: -1}}]": "usage: each number",
		"default: [{usage: {output_tokens: 99999999999}}]":       "usage: each number",
		"agents: {a: [{calls: [{name: x, args: [1]}]}]}":         "mapping or a string",
		"agents: {a: [{calls: [{name: x, args: {a: {1: 2}}}]}]}": "args of",
		"default: [{text: a}]\n---\ndefault: []":                 "more than one document",
		"default:\n  - text: *all\n  - text: b":                  "unknown anchor",
		"default:\n  - text: a\n    text: [b\n  - text: c":       `line 4: "," or "]" is missing in the list that begins at line 3`,
		"default:\n\t- text: a":                                  "line 2: found character that cannot start any token",
	} {
		_, err := script.Parse([]byte(text))
		if !errors.Is(err, script.ErrScript) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := script.Parse(make([]byte, script.MaxBytes+1)); !errors.Is(err, script.ErrScript) {
		t.Error(err)
	}
}

func TestLoadReadsJSONToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "play.json")
	if err := os.WriteFile(path, []byte(`{"default": [{"text": "hi", "delay": "0s"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := script.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Client("").Complete(t.Context(), askRequest(userMessage("a")), nil); err != nil || got.Message.Text != "hi" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := script.Load(path + ".missing"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestRepliesInOrderIgnoreTheTranscript: replies follow the requests where the transcript cannot tell.
func TestRepliesInOrderIgnoreTheTranscript(t *testing.T) {
	c := parseScript(t, "default: [{text: one}, {text: two}]\nin_order: true").Client("")
	for _, want := range []string{"one", "two", script.EndText} {
		r, err := c.Complete(t.Context(), askRequest(userMessage("again")), nil)
		if err != nil || r.Message.Text != want {
			t.Errorf("%q %v, not %q", r.Message.Text, err, want)
		}
	}
}
