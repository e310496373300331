package top

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/compare"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/mailbox"
)

// hostile are texts that would control a terminal, hide themselves, or take all its lines.
var hostile = []string{
	"\x1b[2J\x1b[31mred\x1b]0;title\x07", "a\rb\nc\td\x00", "evil \u202egpj.exe \u2066x\u2069", "csi \u009b2J\u2028end", "bad \xff\xfe\xc3", "zero\u200bwidth \U000e0041",
	strings.Repeat("日本語👩‍👩‍👧", 300), strings.Repeat("e\u0301\u0301\u0301", 500), strings.Repeat("\x1b[7m", 2000), "",
}

// hostileScreen shows one text wherever a text from elsewhere can be.
func hostileScreen(t *testing.T, text string, width, height int) *screen {
	s := newScreen(t, width, height)
	s.fetched(FetchRuns{runsMax}, []client.RunInfo{{RunID: runID, Title: text, State: client.RunLive, Model: text, Started: text}, {RunID: text, State: client.RunState(text), Title: text}})
	s.fetched(FetchQuestions{}, []client.Question{{RunID: runID, Agent: text, Query: text, Question: text, Reason: text, Digest: "d", Rule: text}, {RunID: text, Agent: text, Query: "x", Question: text, Reason: text}})
	s.fetched(FetchNodes{}, []client.NodeInfo{{ID: "n", Name: text, Host: text, State: text, Version: text, LogHealth: &client.LogHealth{Why: text, Remedy: text}}})
	s.press("enter")
	list := []client.Event{
		eventOf(0, "super", event.KindRunStarted, map[string]any{"goal": text, "model": text}), eventOf(1, text, event.KindAgentStarted, map[string]any{"name": text}),
		eventOf(2, text, event.KindToolStarted, map[string]any{"call": text, "tool": text, "args": text}), eventOf(3, "root", event.KindAgentStarted, map[string]any{"name": text}),
		eventOf(4, "root", event.KindQueryAsked, map[string]any{"query": text, "question": text}), eventOf(5, text, text, text), eventOf(6, "root", event.KindMessageAgent, map[string]any{"from": text, "text": text}),
		eventOf(7, "root", event.KindAgentFinished, map[string]any{"name": text, "stop_reason": text, "detail": text}),
		eventOf(8, "super", event.KindRunFinished, map[string]any{"stop_reason": text, "detail": text, "result": text}),
	}
	broken := eventOf(9, "root", event.KindToolFinished, 1)
	broken.Data, broken.TS = json.RawMessage(text), text
	delta := eventOf(10, text, event.KindMessageDelta, event.Delta{Text: text})
	delta.Seq = 0
	s.learn(EventsRead{runID, append(list, broken, delta)})
	return s
}

// TestAttackTexts: hostile texts appear as visible text in all views, and no line is wider than the terminal.
func TestAttackTexts(t *testing.T) {
	for i, text := range hostile {
		for _, size := range [][2]int{{80, 24}, {41, 10}, {200, 50}} {
			s := hostileScreen(t, text, size[0], size[1])
			check := func(where string) {
				t.Helper()
				for _, r := range s.draw() {
					if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c' || r == '\u2028') {
						t.Fatalf("text %d: %s: %U on the screen:\n%q", i, where, r, s.draw())
					}
				}
			}
			for _, key := range []string{"1", "G", "2", "3", "4", "r", "esc", "5", "6", "7", "8", "1", "enter", "?", "esc", "s"} {
				s.press(key)
				check(key)
			}
			s.learn(Pasted{text})
			check("a pasted text")
			s.press("esc", "2")
			doc, err := json.Marshal(map[string]any{"messages": []map[string]any{{"role": text, "text": text}, {"role": "assistant", "text": text, "calls": []map[string]any{{"id": text, "name": text, "args": text}}},
				{"role": "tool", "results": []map[string]any{{"call": text, "text": text, "error": true}}}}})
			if err != nil {
				t.Fatal(err)
			}
			s.fetched(FetchTranscript{runID, s.m.run.agent}, json.RawMessage(doc))
			check("transcript")
			s.press("f")
			s.learn(Pasted{text})
			check("a form")
			s.press("esc", "9")
			entries := EntriesPage{Logs: []mailbox.Address{mailbox.Address(text)}, Entries: []client.LogEntry{{Place: 1, Data: []byte(text)}}}
			entries.Entries = append(entries.Entries, teamEntries(t).Entries...)
			s.fetched(FetchEntries{runID, s.m.run.entries.agent, 0}, entries)
			check("log entries")
			s.press("down", "down", "enter")
			check("a log entry")
			s.press("v", "enter")
			c := compare.Run{RunID: text, Fork: text, Model: text, Reason: text, Text: text}
			step := compare.Pair{Kind: text, Call: text, A: text, B: text + "x", Differs: true}
			s.fetched(FetchComparison{B: runID}, Compared{Comparison: compare.Comparison{A: c, B: c, First: &compare.Difference{Agent: text, Kind: text, Call: text}, Text: text}, Steps: []compare.Pair{step, {Kind: text, A: text, B: text}}})
			check("a comparison")
			s.press("esc")
			s.learn(Fetched{Effect: FetchRun{runID}, Problem: text, At: s.clock})
			check("a problem")
			for _, key := range []string{"I", "N", "R", "c", "esc", "/"} {
				s.press(key)
				check(key)
			}
			s.learn(Pasted{text})
			check("a filter")
		}
	}
}

// TestAttackSizes: no size of a terminal breaks the screen.
func TestAttackSizes(t *testing.T) {
	for _, scene := range scenes {
		s := newScreen(t, 80, 24)
		scene.play(s)
		for width := 0; width < 130; width += 3 {
			for _, height := range []int{0, 1, 9, 10, 11, 13, 24, 90} {
				s.learn(Resized{width, height})
				s.draw()
			}
		}
	}
}

// TestAttackLargeTexts: texts of megabytes are cut, and said to be.
func TestAttackLargeTexts(t *testing.T) {
	large := "\x1b" + strings.Repeat("line ", 1<<20)
	s := newScreen(t, 80, 24)
	s.fetched(FetchRuns{runsMax}, []client.RunInfo{{RunID: runID, Title: large, State: client.RunLive}})
	s.fetched(FetchQuestions{}, []client.Question{{RunID: runID, Agent: "root", Query: "x", Question: large, Digest: "d", Rule: large}})
	s.press("enter")
	s.learn(EventsRead{runID, []client.Event{eventOf(0, "root", event.KindAgentStarted, map[string]any{"name": large}), eventOf(1, "root", event.KindQueryAsked, map[string]any{"query": "x", "question": large})}})
	s.draw()
	s.press("2")
	doc, err := json.Marshal(map[string]any{"messages": []map[string]any{{"role": "user", "text": large}, {"role": "user", "text": large}}})
	if err != nil {
		t.Fatal(err)
	}
	s.fetched(FetchTranscript{runID, s.m.run.agent}, json.RawMessage(doc))
	s.press("g")
	s.draw()
	s.press("I", "G")
	s.draw()
	s.learn(Pasted{large})
	size := 0
	for _, m := range s.m.run.transcript.messages {
		size += len(m.Text)
	}
	for _, e := range s.m.run.events.kept {
		size += len(e.text)
	}
	if most := 4 * textBytesMax; size > most {
		t.Errorf("%d bytes are kept of texts, at most %d", size, most)
	}
}

// TestKeptIsBounded: however many runs, questions, events, agents and messages there are, the screen keeps what its limits say.
func TestKeptIsBounded(t *testing.T) {
	s := newScreen(t, 80, 24)
	runs := make([]client.RunInfo, 3*runsMax)
	for i := range runs {
		runs[i] = client.RunInfo{RunID: fmt.Sprintf("r%06d", i), State: client.RunLive}
	}
	s.fetched(FetchRuns{runsMax}, runs)
	s.fetched(FetchQuestions{}, make([]client.Question, 3*questionsMax))
	s.press("enter")
	id := s.m.run.id
	for i := range 21 {
		var list []client.Event
		for j := range 1000 {
			agent := fmt.Sprintf("root-%d", i*1000+j)
			list = append(list, eventOf(i, "super", event.KindAgentSpawned, map[string]any{"id": agent, "name": "worker", "parent": "root"}), eventOf(i, agent, event.KindTurnStarted, map[string]any{}),
				eventOf(i, agent, event.KindModelStarted, map[string]any{"model": "m"}))
		}
		s.learn(EventsRead{id, list})
	}
	m := s.m
	for what, got := range map[string][2]int{"runs": {len(m.runs), runsMax}, "questions": {len(m.questions), questionsMax}, "events": {len(m.run.events.kept), eventsMax * 5 / 4},
		"agents": {len(m.run.tree().Agents()), agentsMax}, "spans": {len(m.run.timeline.Spans(now)), spansMax * 5 / 4}, "history": {len(m.history), historyMax}} {
		if got[0] > got[1] {
			t.Errorf("%d %s are kept, at most %d", got[0], what, got[1])
		}
	}
	if text := s.draw(); !strings.Contains(text, "the first 20000 agents; the rest is not shown") {
		t.Errorf("the screen hides that it does not show all:\n%s", text)
	}
}

// TestPromptShowsWhereIsTyped: of a text that is wider than the terminal the end is shown.
func TestPromptShowsWhereIsTyped(t *testing.T) {
	s := newScreen(t, 80, 24).press("I", "r")
	s.learn(Pasted{strings.Repeat("wide 日本 ", 100) + "END"})
	line := s.m.statusLine()
	if term.Width(line) > 80 || !strings.Contains(line, "END▏") {
		t.Errorf("%q", line)
	}
}
