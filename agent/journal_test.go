package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// journalKeeper is an agent with a journal, ready for its first reply.
func journalKeeper() agent.State {
	m := spec.DefaultLoopOptions()
	m.LimitNotes = spec.LimitNotes{}
	s := stepAgent(agent.State{}, agent.Resumed{Activation: "a"})
	return stepAgent(s, agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: "Look.", LoopOptions: m, Tools: agent.JournalTools(), Limits: spec.Limits{Turns: 1000}}})
}

// editJournalOnce lets an agent call one journal tool, and returns what it reads.
func editJournalOnce(t *testing.T, s agent.State, tool string, args any) (agent.State, model.ToolResult) {
	t.Helper()
	s, r, _ := editEvents(t, s, tool, args)
	return s, r
}

// editEvents is editJournalOnce, and returns the events of the edit as well.
func editEvents(t *testing.T, s agent.State, tool string, args any) (agent.State, model.ToolResult, []event.Event) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	s = stepAgent(s, agent.Granted{Reservation: s.Reservation, Output: 4096, Calls: 64})
	s, stepped := agent.Step(s, agent.Input{At: s.Now + 60_000, Activation: s.Activation, Fact: agent.Replied{Reservation: s.Reservation,
		Reply: model.Reply{Message: model.Message{Calls: []model.ToolCall{{Name: tool, Args: string(raw)}}}}}})
	last := s.History[len(s.History)-1]
	if len(last.Results) != 1 {
		t.Fatalf("%s is not answered: %+v", tool, last)
	}
	return s, last.Results[0], stepped.Events
}

// A journal fits beside everything else, whatever a model writes into it; what
// does not fit changes nothing and says what does (D7).
func TestAJournalIsBounded(t *testing.T) {
	s := journalKeeper()
	refused := func(tool string, args any, want string) {
		t.Helper()
		before := s.Journal.Edits
		var r model.ToolResult
		if s, r = editJournalOnce(t, s, tool, args); !r.Error || !strings.Contains(r.Text, want) || s.Journal.Edits != before {
			t.Errorf("%s: error=%t %q, want %q", tool, r.Error, r.Text, want)
		}
	}
	refused("update_run_journal", map[string]any{"objective": strings.Repeat("x", agent.JournalTextMax+1)}, "at most 1024 are allowed")
	refused("update_run_journal", map[string]any{"objective": "kept?", "decisions": []string{strings.Repeat("x", agent.JournalEntryMax+1)}}, "at most 512")
	if s.Journal.Objective != "" {
		t.Errorf("a part of a refused update was kept: %q", s.Journal.Objective)
	}
	for _, list := range []string{"verified_findings", "decisions", "artifacts", "open_questions"} {
		for n := range agent.JournalEntriesMax {
			var r model.ToolResult
			entry := map[string]string{"section": list, "entry": fmt.Sprintf("%d %s", n, strings.Repeat("ü", 100))}
			if s, r = editJournalOnce(t, s, "append_run_journal_entry", entry); r.Error && !strings.Contains(r.Text, "shorten it with update_run_journal") {
				t.Fatalf("%s %d: %s", list, n, r.Text)
			}
		}
	}
	refused("append_run_journal_entry", map[string]string{"section": "verified_findings", "entry": "one more"}, "at most 24 are allowed")
	_, r := editJournalOnce(t, s, "get_run_journal", map[string]any{})
	if r.Error || len(r.Text) > agent.JournalBytesMax || len(r.Text) < agent.JournalBytesMax/2 {
		t.Errorf("the journal has %d bytes", len(r.Text))
	}
}

// The digest is at most 500 characters of whatever language, and holds the
// newest findings (D7).
//
//behaviour:shows D7
func TestJournalDigestIsShort(t *testing.T) {
	s := journalKeeper()
	long := strings.Repeat("größere Wörter ", 50)
	_, _, events := editEvents(t, s, "update_run_journal", map[string]any{"objective": long, "current_state": long, "handoff_next_action": long,
		"blockers": []string{long[:400], "another"}, "verified_findings": []string{"old: " + long[:300], "newest: " + long[:300]}})
	for _, e := range events {
		if d, ok := e.Data.(event.JournalUpdated); ok {
			if n := utf8.RuneCountInString(d.Digest); n > agent.DigestMax || n < 300 || !strings.Contains(d.Digest, "found: newest") || strings.Contains(d.Digest, "another") {
				t.Errorf("%d characters: %s", n, d.Digest)
			}
			return
		}
	}
	t.Error("nobody is told of the edit")
}

// An agent that begins with an earlier history takes up its journal: the calls
// that wrote it are in the record, and the whole of it stands before the task (D7).
//
//behaviour:shows D7
func TestARecalledHistoryBringsItsJournal(t *testing.T) {
	s := journalKeeper()
	s, _ = editJournalOnce(t, s, "update_run_journal", map[string]any{"objective": "count them", "blockers": []string{"the gate is shut"}})
	s, _ = editJournalOnce(t, s, "append_run_journal_entry", map[string]string{"section": "secrets", "entry": "refused"})
	past := s.Past()
	parts, err := agent.RecallParts(past, "p")
	if err != nil {
		t.Fatal(err)
	}
	next := stepAgent(agent.State{}, agent.Resumed{Activation: "b"})
	for _, part := range parts {
		next = stepAgent(next, part)
	}
	next = stepAgent(next, agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: "Go on counting.", LoopOptions: spec.DefaultLoopOptions(), Tools: agent.JournalTools()}})
	after, stepped := agent.Step(next, agent.Input{Activation: "b", Fact: agent.Granted{Reservation: next.Reservation, Output: 100, Calls: 64}})
	call, ok := stepped.Effects[0].(agent.CallModel)
	if !ok {
		t.Fatalf("%T", stepped.Effects[0])
	}
	if err := strictRequest(call.Request); err != nil {
		t.Fatalf("%v\n%s", err, printMessages(call.Request.Messages))
	}
	n := len(call.Request.Messages)
	pair, task := call.Request.Messages[n-3], call.Request.Messages[n-1]
	if !strings.Contains(pair.Text, "## objective\ncount them\n## blockers\n- the gate is shut") || !strings.HasSuffix(task.Text, "Go on counting.") {
		t.Errorf("the prompt is\n%s", printMessages(call.Request.Messages))
	}
	if want := "Your run journal in short:\nobjective: count them\nblocker: the gate is shut"; call.Request.Dynamic != want {
		t.Errorf("dynamic %q, want %q", call.Request.Dynamic, want)
	}
	if after.Journal.Objective != "count them" {
		t.Errorf("the journal is %+v", after.Journal)
	}
}
