package top

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// trace is what of a screen a key can change.
func (s *screen) trace() string {
	m := s.m
	return fmt.Sprint(m.View(), m.view, m.help, m.prompt != nil, m.form != nil, m.notice, m.lists[m.view].at, m.pages[m.view].top, m.filters[m.view], len(taken[Effect](s)))
}

// TestBottomLineNamesWhatWorks: in each scene each key that the bottom line names changes something, and each key of the
// view that cannot work now changes nothing.
func TestBottomLineNamesWhatWorks(t *testing.T) {
	for _, scene := range scenes {
		open := func() *screen {
			s := newScreen(t, 80, 24)
			scene.play(s)
			if s.m.prompt != nil || s.m.form != nil || s.m.help {
				return nil
			}
			return s
		}
		s := open()
		if s == nil {
			continue
		}
		line := s.m.keyLine()
		for _, b := range bindings(s.m.view) {
			works := false
			for _, k := range b.keys {
				works = works || open().press(k).trace() != open().press("f12").trace()
			}
			can := b.when == nil || b.when(s.m)
			named := b.word != "" && strings.Contains(line, b.show+" "+b.word)
			rows := isList(s.m.view) && len(s.m.lists[s.m.view].keys) < 2 || !isList(s.m.view) && len(s.m.pages[s.m.view].lines) <= s.m.bodyHeight()
			switch {
			case named != (can && b.word != "") && !b.isSpare:
				t.Errorf("%s: %q is named: %t, can: %t", scene.name, b.word, named, can)
			case works && !can && !slices.ContainsFunc(b.keys, func(k string) bool { return strings.Contains(open().press(k).m.notice, "does nothing now") }):
				t.Errorf("%s: %v works and is not named", scene.name, b.keys)
			case named && !works && !(b.show == "↑↓" && rows):
				t.Errorf("%s: the bottom line names %s %s, which does nothing", scene.name, b.show, b.word)
			}
		}
	}
}

// A key that does nothing now says so, and what was typed for its prompt does not become commands.
func TestKeyThatDoesNothingSaysSo(t *testing.T) {
	s := newScreen(t, 80, 24).openTeam()
	s.learn(EventsRead{runID, endEvents()})
	taken[Effect](s)
	s.press("2", "b")
	if !strings.Contains(s.draw(), "b does nothing now (change a limit of the run") {
		t.Errorf("the notice:\n%s", s.draw())
	}
	at := s.clock.Add(-time.Second)
	for _, letter := range "freeze" { // typed on, as to the prompt
		at = at.Add(answerGuard / 2)
		s.learn(Key{Name: string(letter), Text: string(letter), At: at})
	}
	if s.m.form != nil || s.m.prompt != nil || s.m.view != viewTranscript {
		t.Error("the words for a prompt that was not opened were taken as commands")
	}
	if s.learn(Key{Name: "R", Text: "R", At: at.Add(2 * answerGuard)}); s.m.view != viewRuns {
		t.Error("a key that is pressed later does nothing")
	}
}

// TestAnswers: one key approves the question on the screen, with the digest of its call; a denial has a reason.
func TestAnswers(t *testing.T) {
	base := client.AnswerRequest{RunID: runID, Agent: "root-1-1", Query: "1-0.0", Digest: "5ca1ab1e", By: "ann"}
	with := func(change func(*client.AnswerRequest)) client.AnswerRequest {
		r := base
		change(&r)
		return r
	}
	other := client.AnswerRequest{RunID: "01k9z2zzzzzzzzzzzzzzzzzzzz", Agent: "root", Query: "3-0.0", Decision: spec.TextOnly, Text: "the second one", By: "ann"}
	denied := other
	denied.Decision, denied.Text = spec.Deny, "ask later"
	for name, c := range map[string]struct {
		play func(s *screen)
		want []SendAnswer
	}{
		"approve":               {func(s *screen) { s.press("y") }, []SendAnswer{{with(func(r *client.AnswerRequest) { r.Decision = spec.Approve })}}},
		"approve for this run":  {func(s *screen) { s.press("a") }, []SendAnswer{{with(func(r *client.AnswerRequest) { r.Decision, r.Always = spec.Approve, "run" })}}},
		"approve in directory":  {func(s *screen) { s.press("p") }, []SendAnswer{{with(func(r *client.AnswerRequest) { r.Decision, r.Always = spec.Approve, "project" })}}},
		"deny":                  {func(s *screen) { s.press("n") }, []SendAnswer{{with(func(r *client.AnswerRequest) { r.Decision = spec.Deny })}}},
		"deny with a reason":    {func(s *screen) { s.press("r").enterText("use the other file") }, []SendAnswer{{with(func(r *client.AnswerRequest) { r.Decision, r.Text = spec.Deny, "use the other file" })}}},
		"deny no call":          {func(s *screen) { s.press("j", "n") }, nil},
		"deny no call, asked":   {func(s *screen) { s.press("j", "n").enterText("ask later") }, []SendAnswer{{denied}}},
		"a denial that is left": {func(s *screen) { s.press("r", "n", "esc") }, nil},
		"an answer":             {func(s *screen) { s.press("j", "w").enterText("the second one") }, []SendAnswer{{other}}},
		"an empty answer":       {func(s *screen) { s.press("j", "w", "enter") }, nil},
		"the last question":     {func(s *screen) { s.press("G", "w").enterText("the second one") }, []SendAnswer{{other}}},
		"the first question":    {func(s *screen) { s.press("end", "g", "y") }, []SendAnswer{{with(func(r *client.AnswerRequest) { r.Decision = spec.Approve })}}},
		"approve no call":       {func(s *screen) { s.press("j", "y", "a", "p") }, nil},
		"pasted keys":           {func(s *screen) { s.learn(Pasted{"a\ny\n"}) }, nil},
	} {
		s := newScreen(t, 80, 24).press("I")
		c.play(s)
		if d := cmp.Diff(c.want, taken[SendAnswer](s)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestNewQuestionIsReadFirst: a key that is pressed as a question takes the place of another does not answer it.
func TestNewQuestionIsReadFirst(t *testing.T) {
	s := newScreen(t, 80, 24).press("I")
	s.fetched(FetchQuestions{}, teamQuestions()[1:])
	first := teamQuestions()[0]
	first.Query = "9-0.0"
	s.press("k")
	s.fetched(FetchQuestions{}, []client.Question{first})
	taken[Effect](s)
	s.press("y")
	if got := taken[SendAnswer](s); len(got) != 0 || !strings.Contains(s.draw(), "read it, then press y again") {
		t.Errorf("%+v\n%s", got, s.draw())
	}
	s.press("y")
	if got := taken[SendAnswer](s); len(got) != 1 || got[0].Request.Query != "9-0.0" {
		t.Errorf("%+v", got)
	}
}

// TestSelectionStaysAtItsRow: rows that come and go do not move the selection to another row.
func TestSelectionStaysAtItsRow(t *testing.T) {
	s := newScreen(t, 80, 24).press("down")
	want := s.m.lists[viewRuns].selected()
	s.fetched(FetchRuns{runsMax}, append([]client.RunInfo{{RunID: "01k9z4", State: client.RunLive}}, teamRuns()...))
	if got := s.m.lists[viewRuns].selected(); got != want {
		t.Errorf("%s is selected instead of %s", got, want)
	}
	s.fetched(FetchRuns{runsMax}, teamRuns()[:1])
	if got := s.m.lists[viewRuns].selected(); got != runID {
		t.Errorf("%s is selected", got)
	}
}

// TestCancelAndBudgetAreConfirmed: neither is sent by one key.
func TestCancelAndBudgetAreConfirmed(t *testing.T) {
	cancel := func(agent string, now bool) SendCancel {
		return SendCancel{client.CancelRequest{RunID: runID, Agent: agent, Now: now, Why: "canceled by a person", By: "ann", WaitMS: -1}}
	}
	limits := func(l spec.RunLimits) SendBudget {
		return SendBudget{client.BudgetRequest{RunID: runID, Patch: true, Limits: l, By: "ann"}}
	}
	for name, c := range map[string]struct {
		play func(s *screen)
		want []Effect
	}{
		"cancel":                     {func(s *screen) { s.press("c", "y") }, []Effect{cancel("", false)}},
		"cancel now":                 {func(s *screen) { s.press("c", "!") }, []Effect{cancel("", true)}},
		"cancel one agent":           {func(s *screen) { s.press("G", "c", "a") }, []Effect{cancel("root-1-1", false)}},
		"cancel, not confirmed":      {func(s *screen) { s.press("c", "n", "c", "esc", "c", "x", "c") }, nil},
		"an agent that has ended":    {func(s *screen) { s.press("down", "c", "a") }, nil},
		"tokens":                     {func(s *screen) { s.press("b").enterText("200k").press("y") }, []Effect{limits(spec.RunLimits{Tokens: 200000})}},
		"dollars":                    {func(s *screen) { s.press("b").enterText("$2.5").press("y") }, []Effect{limits(spec.RunLimits{Nano: 2500000000})}},
		"calls":                      {func(s *screen) { s.press("b").enterText("30 calls").press("y") }, []Effect{limits(spec.RunLimits{Calls: 30})}},
		"freeze":                     {func(s *screen) { s.press("b").enterText("freeze").press("y") }, []Effect{SendBudget{client.BudgetRequest{RunID: runID, Freeze: true, By: "ann"}}}},
		"a limit, not confirmed":     {func(s *screen) { s.press("b").enterText("200k").press("n", "y") }, nil},
		"no limit":                   {func(s *screen) { s.press("b").enterText("lots").press("y") }, nil},
		"a message":                  {func(s *screen) { s.press("G", "s").enterText("hurry up") }, []Effect{SendMessage{client.SteerRequest{RunID: runID, Agent: "root-1-1", Text: "hurry up"}}}},
		"a run that has ended":       {func(s *screen) { s.learn(EventsRead{runID, endEvents()}); s.press("c", "y", "b", "s") }, nil},
		"a run that ended meanwhile": {func(s *screen) { s.press("c"); s.learn(EventsRead{runID, endEvents()}); s.press("y") }, []Effect{cancel("", false)}},
	} {
		s := newScreen(t, 80, 24).openTeam()
		taken[Effect](s)
		c.play(s)
		var got []Effect
		for _, e := range taken[Effect](s) {
			if isAction(e) {
				got = append(got, e)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestConfirmationNamesKnownLimits: a limit that the screen does not know is left out.
func TestConfirmationNamesKnownLimits(t *testing.T) {
	for text, want := range map[string]string{"200k": "to 200k tokens (now 100k)?", "$2": "to $2.00 (now none)?", "30 calls": "to 30 tool calls?"} {
		s := newScreen(t, 80, 24).openTeam()
		if s.press("b").enterText(text); !strings.HasSuffix(s.m.prompt.label, want) {
			t.Errorf("%s: %s", text, s.m.prompt.label)
		}
	}
}

// TestNumbersAgreeWithVerbs: one waits, two wait.
func TestNumbersAgreeWithVerbs(t *testing.T) {
	for n, want := range map[int]string{1: "1 reservation waits until others settle", 2: "2 reservations wait until others settle"} {
		s := newScreen(t, 80, 24).openTeam().press("5")
		b := teamBudget()
		b.Description.Budget.Waiting = n
		if s.fetched(FetchBudget{runID}, b); !strings.Contains(s.draw(), want) {
			t.Errorf("%d waiting: %s", n, s.draw())
		}
	}
	s := newScreen(t, 80, 24).openTeam().press("3")
	if !strings.Contains(s.draw(), "1 agent waits for a person") {
		t.Error(s.draw())
	}
	s.learn(EventsRead{runID, []client.Event{eventOf(6000, "root", event.KindQueryAsked, map[string]any{"query": "1-1.0", "question": "Which one?"})}})
	if !strings.Contains(s.draw(), "2 agents wait for a person") {
		t.Error(s.draw())
	}
}

// TestLimitsAreRead reads limits as people write them.
func TestLimitsAreRead(t *testing.T) {
	for text, want := range map[string]spec.RunLimits{"200000": {Tokens: 200000}, "1.5M": {Tokens: 1500000}, "300K tokens": {Tokens: 300000}, "$0.10": {Nano: 100000000}, "1 calls": {Calls: 1},
		"": {}, "0": {}, "-5": {}, "$": {}, "$-1": {}, "$1e9": {}, "NaN": {}, "$inf": {}, "1e99k": {}, "0 calls": {}, "many": {}} {
		r, _, err := parseLimit(text)
		if r.Limits != want || (err == nil) != (want != spec.RunLimits{}) {
			t.Errorf("%q: %+v %v", text, r.Limits, err)
		}
	}
}

// TestAWrongLimitStays keeps a text that is no limit to be corrected, and says what is wrong.
func TestAWrongLimitStays(t *testing.T) {
	s := newScreen(t, 80, 24).openTeam()
	s.press("b").enterText("200q")
	if want := "not a limit (200k tokens, $2, 30 calls, or freeze): 200q"; !strings.Contains(s.draw(), want) {
		t.Fatalf("lacks %q:\n%s", want, s.draw())
	}
	s.press("backspace").enterText("k")
	if s.m.prompt == nil || !strings.Contains(s.m.prompt.label, "to 200k tokens") {
		t.Errorf("the corrected text is no limit:\n%s", s.draw())
	}
}

// TestNavigation goes from the runs to a transcript and back, and to other pages.
func TestNavigation(t *testing.T) {
	s := newScreen(t, 80, 24).openTeam()
	for _, step := range []struct {
		key  string
		want view
	}{{"G", viewTree}, {"enter", viewAgent}, {"enter", viewTranscript}, {"esc", viewAgent}, {"esc", viewTree}, {"6", viewTimeline}, {"I", viewInbox}, {"N", viewNodes}, {"R", viewRuns},
		{"esc", viewNodes}, {"esc", viewInbox}, {"esc", viewTimeline}, {"esc", viewTree}, {"esc", viewRuns}, {"esc", viewRuns}, {"enter", viewTree}, {"L", viewLog}, {"E", viewEvents}, {"M", viewMessages}, {"D", viewTimeline}, {"B", viewBudget}, {"Q", viewQuestions}, {"W", viewStop}, {"S", viewTranscript}, {"T", viewTree}, {"5", viewBudget}, {"2", viewTranscript}} {
		if s.press(step.key); s.m.view != step.want {
			t.Fatalf("%s: the view is %s, want %s", step.key, s.m.view, step.want)
		}
		s.draw()
	}
	if got := s.m.run.agent; got != "root-1-1" {
		t.Errorf("the transcript is that of %s", got)
	}
	s.press("q")
	if len(taken[Quit](s)) != 1 {
		t.Error("q does not leave")
	}
}

// TestLossAndReturn: the screen says that it is behind, asks one thing until a node answers, and then reads the events on.
func TestLossAndReturn(t *testing.T) {
	s := newScreen(t, 80, 24).openTeam()
	taken[Effect](s)
	lost := func(e Effect) {
		s.learn(Fetched{Effect: e, Problem: "no troupe node answers", Lost: true, At: s.clock})
	}
	s.fetched(FetchQuestions{}, teamQuestions())
	lost(Follow{runID})
	s.clock = s.clock.Add(5 * time.Second)
	s.learn(Ticked{s.clock})
	if text := s.draw(); !strings.Contains(text, "behind 5s: no node answers") {
		t.Errorf("the screen does not say that it is behind:\n%s", text)
	}
	if got := taken[Effect](s); !reflect.DeepEqual(got, []Effect{FetchQuestions{}}) {
		t.Errorf("while no node answers: %+v", got)
	}
	lost(FetchQuestions{})
	s.clock = s.clock.Add(2 * time.Second)
	s.learn(Ticked{s.clock})
	if got := taken[FetchQuestions](s); len(got) != 1 {
		t.Errorf("the next probe: %+v", got)
	}
	s.fetched(FetchQuestions{}, teamQuestions())
	if got := taken[Follow](s); !reflect.DeepEqual(got, []Follow{{runID}}) || strings.Contains(s.draw(), "behind") {
		t.Errorf("after the return: %+v\n%s", got, s.draw())
	}
	s.press("R", "c", "y")
	lost(SendCancel{})
	if text := s.draw(); !strings.Contains(text, "not sent: no troupe node answers") {
		t.Errorf("a cancel that was lost:\n%s", text)
	}
}

// TestPollsAskOnlyForWhatIsShown: a question is not asked twice at once, and not for a view that is not open.
func TestPollsAskOnlyForWhatIsShown(t *testing.T) {
	s := newScreen(t, 80, 24)
	taken[Effect](s)
	for range 5 {
		s.clock = s.clock.Add(time.Second)
		s.learn(Ticked{s.clock})
	}
	want := []Effect{FetchQuestions{}, FetchRuns{runsMax}}
	if got := taken[Effect](s); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	s.press("N")
	if got := taken[Effect](s); !reflect.DeepEqual(got, []Effect{FetchNodes{}}) {
		t.Errorf("nodes: %+v", got)
	}
}

// TestTranscriptIsReadAgain: a new message has the transcript asked for again, a piece of one is shown as it comes.
func TestTranscriptIsReadAgain(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.openTranscript()
	taken[Effect](s)
	s.learn(Ticked{s.clock.Add(5 * time.Second)})
	if got := taken[FetchTranscript](s); len(got) != 0 {
		t.Errorf("nothing is new: %+v", got)
	}
	s.learn(EventsRead{runID, []client.Event{eventOf(9000, "root-1-1", event.KindMessageAssistant, event.Said{Text: "x"})}})
	if got := taken[FetchTranscript](s); !reflect.DeepEqual(got, []FetchTranscript{{runID, "root-1-1"}}) {
		t.Errorf("a new message: %+v", got)
	}
	s.fetched(FetchTranscript{runID, "root-1-1"}, json.RawMessage(`{"messages":"none"}`))
	if text := s.draw(); !strings.Contains(text, "does not decode") {
		t.Errorf("a broken transcript:\n%s", text)
	}
}

// A row has room for a title before it has room for the model and for all of an id.
func TestTitlesHaveRoom(t *testing.T) {
	for width, most := range map[int]int{80: 50, 99: 50, 100: 70, 120: 70, 149: 70, 150: 95, 169: 95, 170: 111, 200: 111} {
		if at := strings.Index(runHead(width), "TITLE"); at > most {
			t.Errorf("at %d columns a title begins at %d, not before %d", width, at, most)
		}
	}
}
