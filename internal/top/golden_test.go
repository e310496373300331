package top

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/test/golden"
)

// sizes are the terminals of the captures: small ones of the forms only.
var sizes = []struct{ width, height int }{{80, 24}, {200, 50}, {80, 12}, {40, 10}}

// formScenes are the scenes of small terminals.
var formScenes = []string{"start", "start_empty", "start_last", "start_long", "start_typed", "fork", "compare"}

// scenes say how to come to each view, and to what covers one.
var scenes = []struct {
	name string
	play func(s *screen)
}{
	{"runs", func(*screen) {}},
	{"runs_filter", func(s *screen) { s.press("/"); s.press("d", "e") }},
	{"inbox", func(s *screen) { s.press("I") }},
	{"inbox_reason", func(s *screen) { s.press("I", "r", "n", "o") }},
	{"inbox_answer", func(s *screen) { s.press("I", "down") }},
	{"nodes", func(s *screen) { s.press("N") }},
	{"tree", func(s *screen) { s.openTeam() }},
	{"tree_cancel", func(s *screen) { s.openTeam().press("down", "c") }},
	{"tree_help", func(s *screen) { s.openTeam().press("?") }},
	{"tree_behind", func(s *screen) {
		s.openTeam()
		s.learn(Fetched{Effect: FetchQuestions{}, Problem: "no troupe node answers", Lost: true, At: s.clock})
		s.clock = s.clock.Add(12e9)
		s.learn(Ticked{s.clock})
	}},
	{"tree_ended", func(s *screen) {
		s.openTeam()
		s.learn(EventsRead{runID, endEvents()})
	}},
	{"agent", func(s *screen) { s.openTeam().press("down", "down", "enter") }},
	{"transcript", func(s *screen) { s.openTranscript() }},
	{"transcript_unfolded", func(s *screen) { s.openTranscript(); s.press("e") }},
	{"transcript_writes", func(s *screen) {
		s.openTranscript()
		e := eventOf(11000, "root-1-1", event.KindMessageDelta, event.Delta{Text: "Half of a sen"})
		e.Seq = 0
		s.learn(EventsRead{runID, append(endEvents()[:0:0], e)})
	}},
	{"why", func(s *screen) {
		s.openTeam().press("3")
		s.learn(EventsRead{runID, endEvents()})
	}},
	{"why_not_yet", func(s *screen) { s.openTeam().press("3") }},
	{"questions", func(s *screen) { s.openTeam().press("4") }},
	{"budget", func(s *screen) { s.openBudget() }},
	{"budget_confirm", func(s *screen) { s.openBudget(); s.press("b"); s.enterText("200k") }},
	{"timeline", func(s *screen) { s.openTeam().press("6") }},
	{"messages", func(s *screen) { s.openTeam().press("7") }},
	{"log", func(s *screen) { s.openLog() }},
	{"log_entry", func(s *screen) { s.openLog(); s.press("down", "enter") }},
	{"start", func(s *screen) { s.press("n") }},
	{"start_typed", func(s *screen) {
		s.press("n")
		s.learn(Pasted{"Translate the manual.\nThen " + strings.Repeat("check each chapter, ", 20) + "and stop."})
		s.press("tab", "a", "b", "down", "down", "down", "down", "9", "l", "enter")
		s.learn(Fetched{Effect: s.m.form.sent, Problem: "invalid argument \"9l\" for --max-tokens: it is a number", At: s.clock})
	}},
	{"start_empty", func(s *screen) { s.press("n", "down", "down", "enter") }},
	{"start_last", func(s *screen) { s.press("n", "down", "down", "down", "down", "down", "down", "down", "down", "9") }},
	{"start_long", func(s *screen) {
		s.press("n")
		s.learn(Pasted{strings.Repeat("Check each chapter of the manual. ", 20)})
	}},
	{"fork", func(s *screen) { s.openTranscript(); s.press("f", "h", "i") }},
	{"compare", func(s *screen) { s.press("v") }},
	{"comparison", func(s *screen) { s.openComparison(teamComparison()) }},
	{"comparison_same", func(s *screen) {
		c := teamComparison()
		c.First, c.Steps, c.Text = nil, nil, ""
		s.openComparison(c)
	}},
	{"events", func(s *screen) { s.openTeam().press("8") }},
}

func (s *screen) openTranscript() {
	s.openTeam().press("down", "down", "2")
	s.learnTurn("root-1-1", 1, event.KindMessageAssistant, event.KindTurnFinished)
	s.learnTurn("root-1-1", 2, event.KindTurnStarted, event.KindMessageAssistant, event.KindTurnFinished)
	s.fetched(FetchTranscript{runID, "root-1-1"}, json.RawMessage(teamTranscript))
}

func (s *screen) openLog() {
	s.openTeam().press("9")
	s.fetched(FetchEntries{runID, "root", 0}, teamEntries(s.t))
}

func (s *screen) openComparison(c Compared) {
	s.press("v", "enter")
	s.fetched(FetchComparison{B: runID}, c)
}

func (s *screen) openBudget() {
	s.openTeam().press("5")
	s.fetched(FetchBudget{runID}, teamBudget())
}

// TestCaptures: each view at 80×24 and at 200×50, and each form on small terminals, is as in testdata.
//
//behaviour:shows I4
func TestCaptures(t *testing.T) {
	for _, size := range sizes {
		compared := map[string]bool{}
		dir := fmt.Sprintf("testdata/%dx%d", size.width, size.height)
		for _, scene := range scenes {
			if size.height < 24 && !slices.Contains(formScenes, scene.name) {
				continue
			}
			s := newScreen(t, size.width, size.height)
			scene.play(s)
			file := scene.name + ".txt"
			compared[file] = true
			golden.Compare(t, filepath.Join(dir, file), s.draw()+"\n")
			if line := s.m.keyLine(); term.Width(line) > size.width {
				t.Errorf("%s: the line of the keys is cut at %d columns: %s", scene.name, size.width, line)
			}
		}
		golden.CheckUnused(t, dir, compared)
	}
}

// TestColorsChangeNoText: with colours a screen has the same text, and without none has an escape code.
func TestColorsChangeNoText(t *testing.T) {
	for _, scene := range scenes {
		plain, colored := newScreen(t, 80, 24), newScreen(t, 80, 24)
		colored.m.style.On = true
		scene.play(plain)
		scene.play(colored)
		if text := plain.draw(); strings.ContainsRune(text, 0x1b) {
			t.Errorf("%s: an escape code without colours: %q", scene.name, text)
		} else if got := stripColors(colored.draw()); got != text {
			t.Errorf("%s: with colours:\n%s\nwithout:\n%s", scene.name, got, text)
		}
	}
}

// stripColors removes the codes of colours, and the spaces before the end of a line that they hid.
func stripColors(text string) string {
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		for {
			from := strings.IndexByte(l, 0x1b)
			if from < 0 {
				break
			}
			l = l[:from] + l[from+strings.IndexByte(l[from:], 'm')+1:]
		}
		lines = append(lines, strings.TrimRight(l, " "))
	}
	return strings.Join(lines, "\n")
}

// TestDocumentShowsTheTree: the capture in docs/top.md is that of the tree, without its empty lines.
func TestDocumentShowsTheTree(t *testing.T) {
	doc, err := os.ReadFile("../../docs/top.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newScreen(t, 80, 24)
	s.openTeam()
	_, rest, _ := strings.Cut(string(doc), "```\n")
	shown, _, _ := strings.Cut(rest, "```")
	squeeze := func(text string) string {
		return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), "\n")
	}
	if want := squeeze(s.draw()); squeeze(shown) != want {
		t.Errorf("docs/top.md shows\n%s\nthe screen is\n%s", shown, want)
	}
}
