package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// hookList is document 2's list of hooks, in the order of one run.
var hookList = []struct {
	name, kind string
	is         func(client.Event) bool // nil: every event of the kind
}{
	{"onRunStart", event.KindRunStarted, nil},
	{"onAgentCreated", event.KindAgentSpawned, nil},
	{"onStepStart", event.KindTurnStarted, nil},
	{"onGuardrailTriggered", event.KindGuardrailTriggered, nil},
	{"onStepComplete", event.KindTurnFinished, nil},
	{"onToolCallStart", event.KindToolStarted, nil},
	{"onToolCallComplete", event.KindToolFinished, callSucceeded},
	{"onToolCallError", event.KindToolFinished, callFailed},
	{"onWarning", event.KindWarningRaised, nil},
	{"onApprovalRequested", event.KindQueryAsked, nil},
	{"onApprovalResolved", event.KindQueryAnswered, nil},
	{"onRunComplete", event.KindRunFinished, nil},
}

func callFailed(e client.Event) bool    { return strings.Contains(string(e.Data), `"error":true`) }
func callSucceeded(e client.Event) bool { return !callFailed(e) }

// One run publishes every hook of document 2's list, in the order in which they happen; docs/events.md names them.
//
//behaviour:shows K4
func TestARunPublishesTheWholeListOfHooks(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{
		"hand.md": `---
name: hand
description: Works.
tools: Read, Bash
x-troupe:
  hooks:
    - {point: output, name: guard, command: "if grep -q unfit; then echo no such words >&2; exit 2; fi"}
    - {point: pre_tool, tools: shell, name: flaky, command: "exit 3"}
---
Work.
`,
		"work/note.md": "a note\n",
		"work.yaml": `
default:
  - text: unfit
  - calls: [{name: read_file, args: {path: note.md}}]
  - calls: [{name: read_file, args: {path: missing.md}}]
  - calls: [{name: shell, args: {command: touch done}}]
  - text: "{{last}}"
`})
	if out, code := s.outputOf("run", "-m", "script/work.yaml", "--dir", "work", "--agents", ".", "--agent", "hand", "work"); code != 5 {
		t.Fatalf("exit %d: %s", code, out)
	}
	out, code := s.outputOf("questions", "-o", "json")
	var list []struct {
		RunID string `json:"run_id"`
		Query string `json:"query"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || len(list) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	run := list[0].RunID
	if said, code := s.errorOf("answer", run, list[0].Query, "approve"); code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	if said, code := s.errorOf("run", "--resume", run); code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	out, _ = s.outputOf("events", run, "-o", "jsonl")
	var events []client.Event
	for line := range strings.Lines(out) {
		var e client.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	at := 0
	for _, hook := range hookList {
		for at < len(events) && (events[at].Kind != hook.kind || hook.is != nil && !hook.is(events[at])) {
			at++
		}
		if at == len(events) {
			t.Fatalf("no %s for %s after the ones before it:\n%s", hook.kind, hook.name, out)
		}
	}
}
