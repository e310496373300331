package term

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/agent/event"
)

// eventAt is an event of the run at a number of milliseconds after its start.
func eventAt(ms int, agent, kind, data string) string {
	ts := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond).Format(time.RFC3339Nano)
	return fmt.Sprintf(`{"run":"r","agent":%q,"ts":%q,"kind":%q,"turn":1,"data":%s}`, agent, ts, kind, data)
}

// A coordinator with two children: one calls tools, one is retried and then
// asks a person; at last the coordinator sums up.
var timelineEvents = []string{
	eventAt(0, "super", event.KindRunStarted, `{"goal":"g","model":"m","limits":{"tokens":1000}}`),
	eventAt(0, "super", event.KindAgentSpawned, `{"id":"root","name":"coordinator"}`),
	eventAt(100, "root", event.KindAgentStarted, `{"name":"coordinator"}`),
	eventAt(500, "root", event.KindTurnStarted, `{}`),
	eventAt(500, "root", event.KindModelStarted, `{"model":"m"}`),
	eventAt(2000, "root", event.KindModelFinished, `{"model":"m"}`),
	eventAt(2000, "root", event.KindDelegationRequested, `{"call":"1-0","tool":"delegate","child":"root-1-0"}`),
	eventAt(2000, "root", event.KindDelegationRequested, `{"call":"1-1","tool":"delegate","child":"root-1-1"}`),
	eventAt(2100, "super", event.KindAgentSpawned, `{"id":"root-1-0","name":"historian","parent":"root"}`),
	eventAt(2100, "super", event.KindAgentSpawned, `{"id":"root-1-1","name":"auditor","parent":"root"}`),
	eventAt(2200, "root-1-0", event.KindAgentStarted, `{"name":"historian"}`),
	eventAt(2300, "root-1-0", event.KindTurnStarted, `{}`),
	eventAt(2300, "root-1-0", event.KindModelStarted, `{"model":"m"}`),
	eventAt(3300, "root-1-0", event.KindModelFinished, `{"model":"m"}`),
	eventAt(3300, "root-1-0", event.KindToolStarted, `{"call":"1-0","tool":"git_log"}`),
	eventAt(4000, "root-1-0", event.KindToolStarted, `{"call":"1-1","tool":"grep"}`),
	eventAt(5000, "root-1-0", event.KindToolFinished, `{"call":"1-0","tool":"git_log"}`),
	eventAt(6000, "root-1-0", event.KindToolFinished, `{"call":"1-1","tool":"grep","error":true}`),
	eventAt(6400, "root-1-0", event.KindTurnFinished, `{"phase":"stopping"}`),
	eventAt(6500, "root-1-0", event.KindAgentFinished, `{"name":"historian","stop_reason":"completed","turns":1}`),
	eventAt(2200, "root-1-1", event.KindAgentStarted, `{"name":"auditor"}`),
	eventAt(3200, "root-1-1", event.KindTurnStarted, `{}`),
	eventAt(3200, "root-1-1", event.KindModelStarted, `{"model":"m"}`),
	eventAt(3900, "root-1-1", event.KindModelRetry, `{"model":"m","error":"rate_limited"}`),
	eventAt(5000, "root-1-1", event.KindModelStarted, `{"model":"m"}`),
	eventAt(5400, "root-1-1", event.KindModelFinished, `{"model":"m"}`),
	eventAt(5400, "root-1-1", event.KindQueryAsked, `{"query":"q","question":"may I?"}`),
	eventAt(8000, "root-1-1", event.KindQueryAnswered, `{"query":"q","decision":"approve"}`),
	eventAt(8000, "root-1-1", event.KindToolStarted, `{"call":"1-0","tool":"deploy"}`),
	eventAt(9000, "root-1-1", event.KindAgentResumed, `{"phase":"acting"}`),
	eventAt(9100, "root-1-1", event.KindAgentFinished, `{"name":"auditor","stop_reason":"completed","turns":1}`),
	eventAt(6500, "root", event.KindDelegationFinished, `{"call":"1-0","tool":"delegate","child":"root-1-0"}`),
	eventAt(9100, "root", event.KindDelegationFinished, `{"call":"1-1","tool":"delegate","child":"root-1-1"}`),
	eventAt(9200, "root", event.KindTurnFinished, `{"phase":"reserving"}`),
	eventAt(9300, "root", event.KindTurnStarted, `{}`),
	eventAt(9300, "root", event.KindModelStarted, `{"model":"m"}`),
	eventAt(11900, "root", event.KindModelFinished, `{"model":"m"}`),
	eventAt(11950, "root", event.KindTurnFinished, `{"phase":"stopping"}`),
	eventAt(12000, "root", event.KindAgentFinished, `{"name":"coordinator","stop_reason":"completed","turns":2}`),
	eventAt(12000, "super", event.KindRunFinished, `{"type":"result","stop_reason":"completed"}`),
}

func buildTimeline(t *testing.T, docs []string) *Timeline {
	t.Helper()
	var line Timeline
	for _, doc := range docs {
		line.AddEvent(parseEvent(t, doc))
	}
	return &line
}

//behaviour:shows I4
func TestTheTimelineIsBarsOverTheTimeOfTheRun(t *testing.T) {
	want := []string{
		"                       0               4.0s            8.0s       12.0s",
		"coordinator   root     ··██████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░███████████    11.9s",
		"├─ historian  root-1-0         ·████▓▓▓▓▓▓▓▓▓▓▓──                           4.3s",
		"└─ auditor    root-1-1         ·····███××××██??????????▓▓▓▓                 6.9s",
		"█ model   ? waits for a person   ▓ tool   × waits to try again",
		"· waits for the budget   ░ waits for children   ─ rest of a turn",
	}
	lines := buildTimeline(t, timelineEvents).Lines(Style{}, time.Time{}, 80)
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
}

// A call that asks a person is a wait for that person, and a tool before and after.
func TestACallThatAsksIsDrawnAsAWaitForAPerson(t *testing.T) {
	line := buildTimeline(t, []string{
		eventAt(0, "root", event.KindAgentStarted, `{"name":"assistant"}`),
		eventAt(0, "root", event.KindTurnStarted, `{"turn":1}`),
		eventAt(0, "root", event.KindModelStarted, `{"model":"m"}`),
		eventAt(1000, "root", event.KindModelFinished, `{}`),
		eventAt(1000, "root", event.KindToolStarted, `{"call":"1-0","tool":"ask_human"}`),
		eventAt(1000, "root", event.KindQueryAsked, `{"query":"1-0.1"}`),
		eventAt(9000, "root", event.KindQueryAnswered, `{"query":"1-0.1"}`),
		eventAt(9000, "root", event.KindToolFinished, `{"call":"1-0"}`),
		eventAt(10000, "root", event.KindAgentFinished, `{"name":"assistant","stop_reason":"completed","turns":1}`),
	}).Lines(Style{}, time.Time{}, 60)
	if !strings.Contains(line[1], "??????????") || strings.Contains(line[1], "▓▓▓") {
		t.Errorf("%s", strings.Join(line, "\n"))
	}
}

// However narrow the terminal and however wide the names, no line is broken.
func TestNoLineOfATimelineIsWiderThanTheTerminal(t *testing.T) {
	docs := append([]string{}, timelineEvents...)
	docs = append(docs, eventAt(12100, "super", event.KindAgentSpawned, `{"id":"root-2-0","name":"日本語の名前がとても長いエージェントですから切ります","parent":"root"}`))
	line := buildTimeline(t, docs)
	for width := 30; width < 200; width++ {
		for _, style := range []Style{{}, {On: true}} {
			for _, l := range line.Lines(style, time.Time{}, width) {
				if Width(l) > width || strings.ContainsRune(l, '\n') {
					t.Fatalf("%d: %d columns: %q", width, Width(l), l)
				}
			}
		}
	}
}

func TestTimelineSpans(t *testing.T) {
	line := buildTimeline(t, timelineEvents)
	var got []string
	for _, s := range line.Spans(time.Time{}) {
		got = append(got, fmt.Sprintf("%s %s %s %d-%d error=%t open=%t", s.AgentName, s.Kind, s.Name, s.StartMS, s.EndMS, s.Error, s.Open))
	}
	want := []string{
		"coordinator waiting budget 100-500 error=false open=false",
		"coordinator turn turn 500-9200 error=false open=false",
		"coordinator model m 500-2000 error=false open=false",
		"coordinator waiting root-1-0 2000-6500 error=false open=false",
		"coordinator waiting root-1-1 2000-9100 error=false open=false",
		"historian waiting budget 2200-2300 error=false open=false",
		"auditor waiting budget 2200-3200 error=false open=false",
		"historian turn turn 2300-6400 error=false open=false",
		"historian model m 2300-3300 error=false open=false",
		"auditor turn turn 3200-9000 error=false open=false",
		"auditor model m 3200-3900 error=true open=false",
		"historian tool git_log 3300-5000 error=false open=false",
		"auditor waiting retry 3900-5000 error=false open=false",
		"historian tool grep 4000-6000 error=true open=false",
		"auditor model m 5000-5400 error=false open=false",
		"auditor waiting person 5400-8000 error=false open=false",
		"auditor tool deploy 8000-9000 error=false open=false",
		"coordinator waiting budget 9200-9300 error=false open=false",
		"coordinator turn turn 9300-11950 error=false open=false",
		"coordinator model m 9300-11900 error=false open=false",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A run that lives is shown up to now.
func TestATimelineOfALiveRunEndsNow(t *testing.T) {
	line := buildTimeline(t, timelineEvents[:5])
	spans := line.Spans(time.Date(2026, 1, 2, 3, 4, 3, 0, time.UTC))
	last := spans[len(spans)-1]
	if !last.Open || last.Kind != ModelSpan || last.EndMS != 3000 {
		t.Errorf("%+v", last)
	}
	empty := Timeline{}
	if lines := empty.Lines(Style{}, time.Time{}, 80); len(lines) != 1 {
		t.Errorf("%q", lines)
	}
}

// An agent that the throttle lets through to no model waits: until its next turn begins, or another model takes over.
func TestWaitsForAThrottleAreShown(t *testing.T) {
	for name, end := range map[string]string{
		"its turn comes":   eventAt(5000, "root", event.KindTurnFinished, `{"phase":"reserving"}`),
		"another model":    eventAt(5000, "root", event.KindModelFallback, `{"from":"m","to":"n"}`),
		"the node crashed": eventAt(5000, "root", event.KindAgentResumed, `{"phase":"waiting"}`),
	} {
		docs := append([]string{}, timelineEvents[:5]...)
		paused := `{"model":"m","why":"the throttle is closed","refused":1,"left_ms":9000}`
		docs = append(docs, eventAt(1000, "root", event.KindErrorRaised, `{}`), eventAt(1000, "root", event.KindGatePaused, paused), eventAt(1000, "root", event.KindTurnFinished, `{"phase":"waiting"}`),
			eventAt(1000, "root", event.KindModelRetry, `{}`), eventAt(2000, "root", event.KindGatePaused, paused), end,
			eventAt(5100, "root", event.KindTurnStarted, `{}`), eventAt(5100, "root", event.KindModelStarted, `{"model":"m"}`), eventAt(8000, "root", event.KindModelFinished, `{"model":"m"}`),
			eventAt(8000, "root", event.KindAgentFinished, `{"name":"coordinator"}`), eventAt(8000, "super", event.KindRunFinished, `{"type":"result"}`))
		line := buildTimeline(t, docs)
		var got []string
		for _, s := range line.Spans(time.Time{}) {
			if s.Name == forThrottle {
				got = append(got, fmt.Sprintf("%s %d-%d open=%t", s.Kind, s.StartMS, s.EndMS, s.Open))
			}
		}
		if d := cmp.Diff([]string{"waiting 1000-2000 open=false", "waiting 2000-5000 open=false"}, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if text := strings.Join(line.Lines(Style{}, time.Time{}, 80), "\n"); !strings.Contains(text, "█~~~") || !strings.Contains(text, "~ waits for a throttle") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// What was in progress when the process died looks neither alive nor longer than it was: in the tree and in the timeline.
func TestAnInterruptedRunStandsStill(t *testing.T) {
	line := buildTimeline(t, timelineEvents[:5])
	line.Tree().MarkInterrupted()
	now := time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC)
	tree := strings.Join(line.Tree().Lines(Style{}, now, 100, 20), "\n")
	if !strings.Contains(tree, "○ coordinator  turn 1   interrupted: thinking") || !strings.Contains(tree, "   00:00   interrupted: no process works on it") {
		t.Error(tree)
	}
	spans := line.Spans(now)
	if last := spans[len(spans)-1]; last.EndMS != 500 || !last.Open {
		t.Errorf("%+v", last)
	}
	if lines := line.Lines(Style{}, now, 80); lines[len(lines)-1] != "interrupted: no process works on it" {
		t.Errorf("%q", lines)
	}
	line.AddEvent(parseEvent(t, eventAt(9000, "root", event.KindAgentResumed, `{"phase":"thinking"}`))) // another process continues it
	if text := strings.Join(line.Tree().Lines(Style{}, now, 100, 20), "\n"); strings.Contains(text, "interrupted") {
		t.Error(text)
	}
}
