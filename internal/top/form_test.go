package top

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
)

// TestFormsBeginRuns: a form sends what was typed, keeps it if the request is refused or lost, and opens the run that begins.
func TestFormsBeginRuns(t *testing.T) {
	s := newScreen(t, 80, 24).press("n")
	s.enterText("look around")
	want := StartRun{ID: s.m.newID(), Prompt: "look around"}
	if got := taken[StartRun](s); !reflect.DeepEqual(got, []StartRun{want}) {
		t.Fatalf("%+v", got)
	}
	s.press("x", "enter")
	if got := taken[StartRun](s); len(got) != 0 {
		t.Errorf("sent twice: %+v", got)
	}
	s.learn(Fetched{Effect: want, Problem: "no troupe node answers", Lost: true, At: s.clock})
	if text := s.draw(); !strings.Contains(text, "look around") || !strings.Contains(text, "no troupe node answers; ⏎ sends it again") {
		t.Errorf("a request that was lost:\n%s", text)
	}
	s.press("down", "a", "enter")
	want.Agent = "a"
	if got := taken[StartRun](s); !reflect.DeepEqual(got, []StartRun{want}) {
		t.Errorf("sent again: %+v", got)
	}
	s.fetched(want, Begun{Run: want.ID, Notes: "it has begun"})
	if got := taken[Follow](s); !reflect.DeepEqual(got, []Follow{{want.ID}}) || s.m.view != viewTree || !strings.Contains(s.draw(), "it has begun") {
		t.Errorf("%+v\n%s", got, s.draw())
	}
}

// TestFormThatWasLeft: a run that begins after its form was left does not take the screen.
func TestFormThatWasLeft(t *testing.T) {
	s := newScreen(t, 80, 24).press("n")
	s.enterText("go").press("esc")
	s.fetched(StartRun{ID: s.m.newID(), Prompt: "go"}, Begun{Run: "01k9z5"})
	if s.m.view != viewRuns || !strings.Contains(s.draw(), "run 01k9z5 has begun") {
		t.Errorf("%s\n%s", s.m.view, s.draw())
	}
}

// TestBeginWithoutReply: a run whose form was left, and whose reply was lost, may have begun; the screen names it.
func TestBeginWithoutReply(t *testing.T) {
	s := newScreen(t, 80, 24).press("n")
	s.enterText("go").press("esc")
	e := StartRun{ID: s.m.newID(), Prompt: "go"}
	s.learn(Fetched{Effect: e, Problem: "no troupe node answers", Lost: true, At: s.clock})
	if text := s.draw(); !strings.Contains(text, "run "+e.ID+" may have begun: no troupe node answers") {
		t.Error(text)
	}
	s = newScreen(t, 80, 24).press("v", "enter")
	s.learn(Fetched{Effect: s.m.form.sent, Problem: "no troupe node answers", Lost: true, At: s.clock})
	if text := s.draw(); strings.Contains(text, "one run") || !strings.Contains(text, "no troupe node answers; ⏎ sends it again") {
		t.Errorf("a comparison begins no run:\n%s", text)
	}
}

// TestForkNamesTheTurnOfTheTranscript: the form of a fork begins with the turn on the screen, and refuses others than those
// that the agent has completed.
func TestForkNamesTheTurnOfTheTranscript(t *testing.T) {
	fork := func(turn int) []ForkRun {
		return []ForkRun{{ID: "01k9z4newnewnewnewnewnewne", Run: runID, Agent: "root-1-1", Turn: turn, Prompt: "again", MaxTokens: "9k"}}
	}
	open := func() *screen {
		s := newScreen(t, 80, 24)
		s.openTranscript()
		return s
	}
	s := open().press("f")
	s.learn(Pasted{"again"})
	if s.press("up", "up", "down", "down", "down", "down", "down").enterText("9k"); !reflect.DeepEqual(taken[ForkRun](s), fork(2)) {
		t.Errorf("after the last turn: %+v\n%s", s.effects, s.draw())
	}
	s = open()
	if s.press("g"); s.m.run.transcript.turnAt(7) != 1 || s.m.run.transcript.turnAt(2) != 0 {
		t.Errorf("the turns of the lines: %v", s.m.run.transcript.turns)
	}
	s.press("f", "up", "ctrl+u").enterText("3")
	if got := taken[ForkRun](s); len(got) != 0 || !strings.Contains(s.draw(), "a number from 0 to 2") {
		t.Errorf("%+v\n%s", got, s.draw())
	}
}

// TestTurnsOfMessages: the turns of imported messages are 0, and compacted ones are numbered by their calls.
func TestTurnsOfMessages(t *testing.T) {
	doc, err := decode[transcriptDoc](json.RawMessage(`{"messages":[{"role":"user"},{"role":"assistant"},{"role":"assistant","calls":[{"id":"2-0"}]},{"role":"tool"},{"role":"assistant","calls":[{"id":"call_7"}]},{"role":"assistant"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := turnsOf(doc.Messages, 5), []int{0, 1, 2, 0, 4, 5}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := turnsOf(doc.Messages, 2), []int{0, 0, 0, 0, 1, 2}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestTurnsWhileOneRuns: the turn that runs does not change the numbers of those before it, and a fork begins after one that is
// complete.
func TestTurnsWhileOneRuns(t *testing.T) {
	s := newScreen(t, 80, 24).openTeam().press("down", "down", "2")
	learn := func(turn int, kinds ...event.Kind) {
		s.learnTurn("root-1-1", turn, kinds...)
		s.fetched(FetchTranscript{runID, "root-1-1"}, json.RawMessage(`{"messages":[{"role":"user","text":"go"},{"role":"assistant","text":"one"},{"role":"user","text":"on"},{"role":"assistant","text":"two"}]}`))
	}
	want := func(when string, turn int) {
		t.Helper()
		if got := s.m.run.transcript.newestTurn(); got != 2 {
			t.Errorf("%s: the last reply is of turn %d\n%s", when, got, s.draw())
		}
		if s.press("f"); s.m.form == nil || s.m.form.fields[0].text != strconv.Itoa(turn) {
			t.Errorf("%s: no fork after turn %d\n%s", when, turn, s.draw())
		}
		s.press("esc")
	}
	learn(1, event.KindMessageAssistant, event.KindTurnFinished)
	learn(2, event.KindTurnStarted, event.KindMessageAssistant)
	want("its tools run", 1)
	learn(2, event.KindTurnFinished)
	want("it has ended", 2)
	learn(3, event.KindTurnStarted)
	want("the next one runs", 2)
}

// TestEntriesTurnPages: the pages of a log go forth and back, and o shows the log of the next agent from its start.
func TestEntriesTurnPages(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.openLog()
	next := func(key string, want FetchEntries, page EntriesPage) {
		t.Helper()
		s.press(key)
		if got := taken[FetchEntries](s); !reflect.DeepEqual(got, []FetchEntries{want}) {
			t.Errorf("%s: %+v", key, got)
		}
		s.fetched(want, page)
	}
	taken[Effect](s)
	next("]", FetchEntries{runID, "root", 4}, EntriesPage{Logs: teamEntries(t).Logs})
	next("[", FetchEntries{runID, "root", 0}, teamEntries(t))
	next("o", FetchEntries{runID, "root-1-1", 0}, teamEntries(t))
	next("o", FetchEntries{runID, "super", 0}, teamEntries(t))
	if text := s.draw(); !strings.Contains(text, "of the supervisor") {
		t.Error(text)
	}
}
