package term

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/client"
)

func TestColor(t *testing.T) {
	for _, c := range []struct {
		mode string
		tty  bool
		env  map[string]string
		want bool
	}{
		{"auto", true, nil, true},
		{"", true, nil, true},
		{"auto", false, nil, false},
		{"always", false, map[string]string{"NO_COLOR": "1"}, true},
		{"never", true, map[string]string{"CLICOLOR_FORCE": "1"}, false},
		{"auto", true, map[string]string{"NO_COLOR": "1"}, false},
		{"auto", true, map[string]string{"NO_COLOR": ""}, true},
		{"auto", true, map[string]string{"TERM": "dumb"}, false},
		{"auto", false, map[string]string{"CLICOLOR_FORCE": "1"}, true},
		{"auto", false, map[string]string{"CLICOLOR_FORCE": "0"}, false},
		{"auto", true, map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, false},
	} {
		got, err := UseColor(c.mode, c.tty, func(k string) string { return c.env[k] })
		if err != nil || got != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	if _, err := UseColor("sometimes", true, os.Getenv); err == nil {
		t.Error("no error for a word that is not a choice")
	}
}

// The text of a model, a tool or a file name cannot control the terminal.
func TestControlCharactersAreEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                "plain",
		"two\nlines\tand tabs": "two\nlines\tand tabs",
		"\x1b[2J":              `\x1b[2J`,
		"\x1b]0;title\x07":     `\x1b]0;title\x07`,
		"a\rb":                 `a\x0db`,
		"csi \u009b2J":         `csi \u009b2J`,
		"evil \u202egpj.exe":   `evil \u202egpj.exe`,
		"iso \u2066x\u2069":    `iso \u2066x\u2069`,
		"zero\u200bwidth":      `zero\u200bwidth`,
		"tag \U000e0041":       `tag \U000e0041`,
		"line\u2028end":        `line\u2028end`,
		"bad \xff\xfe":         `bad \xff\xfe`,
		"a \uFFFD real one":    "a \uFFFD real one",
		"👩\u200d🚀 ä 日本":        "👩\u200d🚀 ä 日本",
	} {
		if got := CleanText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := CleanLine(" a\n\n b\tc\r\n"); got != "a   b c" && got != "a  b c" {
		t.Errorf("%q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31m\u202e\xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, out := range []string{CleanText(text), CleanLine(text), Truncate(CleanLine(text), 10), string(CleanJSON([]byte(text)))} {
			for _, r := range out {
				if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
					t.Errorf("%q lets %U through: %q", text, r, out)
				}
			}
		}
		if n := Width(Truncate(CleanLine(text), 10)); n > 10 {
			t.Errorf("%q is %d columns wide", text, n)
		}
		for _, line := range Wrap(CleanText(text), 10) {
			if Width(line) > 10 {
				t.Errorf("%q has a line %q", text, line)
			}
		}
		if !utf8.ValidString(CleanText(text)) {
			t.Errorf("%q", CleanText(text))
		}
	})
}

// A JSON document says the same after it was made harmless.
func TestCleanJSON(t *testing.T) {
	in := map[string]string{"a": "\x1b[2J", "b": "\u202e\u009b \U000e0041 日本", "c": "plain"}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]string
	if err := json.Unmarshal(CleanJSON(raw), &out); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(in, out); d != "" {
		t.Error(d)
	}
}

func TestWidthInTerminalCells(t *testing.T) {
	s := Style{On: true}
	for text, want := range map[string]int{"": 0, "abc": 3, "ä": 1, "a\u0301": 1, "日本": 4, s.Red("abc"): 3, "├─ ✓": 4, "👩\u200d🚀": 2, "❤\ufe0f": 2, "🇩🇪": 2, "e\u0301\u0323": 1} {
		if got := Width(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	for in, want := range map[string]string{"abcdef": "abc…", "日本語": "日…", "abcd": "abcd"} {
		if got := Truncate(in, 4); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := Truncate("👩\u200d🚀👩\u200d🚀👩\u200d🚀", 4); got != "👩\u200d🚀…" {
		t.Errorf("a character was cut: %q", got)
	}
	if got := Truncate(s.Red("abcdef"), 4); got != "\x1b[31mabc…\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := Pad("ab", 4); got != "ab  " {
		t.Errorf("%q", got)
	}
}

// A frame goes over the one before, also when the terminal broke its lines.
func TestLiveRegionRedrawsOverTheLastFrame(t *testing.T) {
	var out strings.Builder
	width := 20
	l := LiveRegion{Out: &out, Size: func() (int, int) { return width, 5 }}
	steps := []struct {
		lines []string
		want  string
	}{
		{[]string{"one", "two"}, "\rone\x1b[K\ntwo\x1b[K\n\x1b[J"},
		{[]string{"three"}, "\x1b[2A\rthree\x1b[K\n\x1b[J"},
		{[]string{strings.Repeat("x", 30)}, "\x1b[1A\r" + strings.Repeat("x", 18) + "…\x1b[K\n\x1b[J"},
	}
	for _, s := range steps {
		out.Reset()
		if err := l.Draw(s.lines); err != nil || out.String() != s.want {
			t.Errorf("%v: %q, want %q", err, out.String(), s.want)
		}
	}
	width = 10
	out.Reset()
	if err := l.WriteAbove("note"); err != nil || out.String() != "\x1b[2A\r\x1b[Jnote\n" {
		t.Errorf("%v: %q", err, out.String())
	}
	out.Reset()
	if err := l.Draw([]string{"1", "2", "3", "4", "5", "6"}); err != nil || strings.Count(out.String(), "\n") != 4 {
		t.Errorf("%v: a frame is higher than the terminal: %q", err, out.String())
	}
}

func parseEvent(t *testing.T, doc string) client.Event {
	t.Helper()
	var e client.Event
	if err := json.Unmarshal([]byte(doc), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

var treeEvents = []string{
	`{"run":"r","agent":"super","ts":"2026-01-02T03:04:00.000Z","kind":"run.started","data":{"goal":"g","model":"m","limits":{"tokens":1000}}}`,
	`{"run":"r","agent":"super","kind":"agent.spawned","data":{"id":"root","name":"boss"}}`,
	`{"run":"r","agent":"root","ts":"2026-01-02T03:04:00.000Z","kind":"agent.started","data":{"name":"boss"}}`,
	`{"run":"r","agent":"root","kind":"turn.started","turn":1,"data":{}}`,
	`{"run":"r","agent":"root","kind":"model.finished","turn":1,"data":{"usage":{"input_tokens":200,"output_tokens":50},"usage_known":true}}`,
	`{"run":"r","agent":"root","kind":"delegation.requested","turn":1,"data":{"call":"1-0","tool":"delegate","child":"root-1-0","args":"{\"agent\":\"a\",\"task\":\"look\"}"}}`,
	`{"run":"r","agent":"root","kind":"delegation.requested","turn":1,"data":{"call":"1-1","tool":"delegate","child":"root-1-1"}}`,
	`{"run":"r","agent":"super","kind":"agent.spawned","data":{"id":"root-1-0","name":"anna","parent":"root"}}`,
	`{"run":"r","agent":"super","kind":"agent.spawned","data":{"id":"root-1-1","name":"bert","parent":"root"}}`,
	`{"run":"r","agent":"root-1-0","parent":"root","ts":"2026-01-02T03:04:00.000Z","kind":"agent.started","data":{"name":"anna"}}`,
	`{"run":"r","agent":"root-1-0","parent":"root","kind":"tool.started","turn":2,"data":{"call":"2-0","tool":"grep","args":"{\"pattern\":\"TODO\\u001b[2J\"}"}}`,
	`{"run":"r","agent":"super","kind":"budget.reserved","data":{"limit":{"tokens":1000},"used":250,"reserved":250}}`,
}

func TestTreeIsDrawnFromEvents(t *testing.T) {
	var tree Tree
	for _, doc := range treeEvents {
		tree.AddEvent(parseEvent(t, doc))
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []string{
		"● boss     turn 1   waits for 2 children               250",
		"├─ ● anna  turn 2   grep TODO\\x1b[2J                     0",
		"└─ · bert           queued                               0",
		"tokens 250/1k   3 agents   0 tool calls   00:05",
	}
	if d := cmp.Diff(want, tree.Lines(Style{}, now, 59, 24)); d != "" {
		t.Error(d)
	}
	if !tree.IsToolRunning() || tree.CountAsking() != 0 {
		t.Error("a tool is running, and nobody asks")
	}
	for _, doc := range []string{
		`{"run":"r","agent":"root-1-0","kind":"tool.finished","data":{"call":"2-0","tool":"grep"}}`,
		`{"run":"r","agent":"root-1-0","ts":"2026-01-02T03:04:02.000Z","kind":"agent.finished","data":{"name":"anna","stop_reason":"completed","turns":2}}`,
		`{"run":"r","agent":"root-1-1","kind":"query.asked","data":{"query":"q","question":"may I?"}}`,
		`{"run":"r","agent":"root-1-1","kind":"agent.resumed","data":{"phase":"parked"}}`, // the question is still open
	} {
		tree.AddEvent(parseEvent(t, doc))
	}
	want = []string{
		"● boss     turn 1   waits for 2 children               250",
		"├─ ✓ anna  turn 2   done  2.0s                           0",
		"└─ ? bert           asks: may I?                         0",
	}
	if d := cmp.Diff(want, tree.Lines(Style{}, now, 59, 24)[:3]); d != "" {
		t.Error(d)
	}
	if tree.CountAsking() != 1 || tree.AgentName("root-1-1") != "bert" {
		t.Error("bert asks")
	}
	small := tree.Lines(Style{}, now, 59, 3)
	if len(small) > 3 || !strings.Contains(strings.Join(small, "\n"), "more lines") {
		t.Errorf("%q", small)
	}
}

// An agent whose budget a person has frozen is shown so while it waits, with those below it, and not during its model call.
func TestFrozenAgentsAreShown(t *testing.T) {
	var tree Tree
	for _, doc := range []string{
		`{"run":"r","agent":"super","kind":"agent.spawned","data":{"id":"root","name":"boss"}}`,
		`{"run":"r","agent":"super","kind":"agent.spawned","data":{"id":"root-1-1","name":"ann","parent":"root"}}`,
		`{"run":"r","agent":"super","kind":"agent.spawned","data":{"id":"root-1-10","name":"ben","parent":"root"}}`,
		`{"run":"r","agent":"root-1-1","kind":"turn.started","turn":1}`,
		`{"run":"r","agent":"root-1-10","kind":"turn.started","turn":1}`,
		`{"run":"r","agent":"root-1-1","kind":"model.started"}`,
		`{"run":"r","agent":"super","kind":"budget.changed","data":{"id":"root-1-1","subtree":{"frozen":true}}}`,
	} {
		tree.AddEvent(parseEvent(t, doc))
	}
	states := func() string {
		_, ann := tree.agents["root-1-1"].markAndActivity(Style{}, time.Time{})
		_, ben := tree.agents["root-1-10"].markAndActivity(Style{}, time.Time{})
		return ann + ", " + ben
	}
	for _, step := range []struct{ doc, want string }{
		{`{"run":"r","agent":"root-1-1","kind":"message.user"}`, "thinking, thinking"},
		{`{"run":"r","agent":"root-1-1","kind":"model.finished"}`, "frozen, thinking"},
		{`{"run":"r","agent":"super","kind":"budget.changed","data":{"id":"root","subtree":{"frozen":true}}}`, "frozen, frozen"},
		{`{"run":"r","agent":"super","kind":"budget.changed","data":{"id":"root-1-1","subtree":{}}}`, "frozen, frozen"}, // the root's freeze holds
		{`{"run":"r","agent":"super","kind":"budget.changed","data":{"id":"root","subtree":{}}}`, "thinking, thinking"},
	} {
		if tree.AddEvent(parseEvent(t, step.doc)); states() != step.want {
			t.Errorf("after %s: %s", step.doc, states())
		}
	}
}

// Where there is no room for all, those that are done are counted.
func TestFinishedAgentsAreCountedWhereThereIsNoRoom(t *testing.T) {
	var tree Tree
	tree.AddEvent(parseEvent(t, `{"run":"r","agent":"super","kind":"agent.spawned","data":{"id":"root","name":"boss"}}`))
	for i := range 12 {
		id := fmt.Sprintf("root-1-%d", i)
		tree.AddEvent(parseEvent(t, fmt.Sprintf(`{"run":"r","agent":"super","kind":"agent.spawned","data":{"id":%q,"name":"child","parent":"root"}}`, id)))
		if i > 0 {
			tree.AddEvent(parseEvent(t, fmt.Sprintf(`{"run":"r","agent":%q,"kind":"agent.finished","data":{"stop_reason":"completed"}}`, id)))
		}
	}
	lines := strings.Join(tree.Lines(Style{}, time.Time{}, 60, 8), "\n")
	if strings.Count(lines, "\n") != 3 || strings.Count(lines, "child") != 1 || !strings.Contains(lines, "└─ ✓ 11 more done") {
		t.Error(lines)
	}
}

func TestEventLine(t *testing.T) {
	t.Setenv("TZ", "UTC")
	for doc, want := range map[string]string{
		`{"run":"01k9zabcdef","agent":"root","kind":"turn.started","turn":2,"data":{"transition":"next_turn"}}`:                                                  "--:--:-- abcdef root         turn.started         turn 2  next_turn",
		`{"run":"r","agent":"root","kind":"stop.vetoed","data":{"proposal":1,"why":"no\nevidence"}}`:                                                             "--:--:-- r root         stop.vetoed          no evidence",
		`{"run":"r","agent":"root","kind":"hook.fired","data":{"hook":"gate","point":"pre_tool","decision":"deny","text":"no","call":"1-0","tool":"pay"}}`:       "--:--:-- r root         hook.fired           pre_tool  gate  deny  1-0  pay  no",
		`{"run":"r","agent":"root","kind":"tool.denied","data":{"call":"1-0","tool":"pay","decision":"deny","by":["gate"],"why":"no"}}`:                          "--:--:-- r root         tool.denied          1-0  pay  deny  by gate  no",
		`{"run":"r","agent":"root","kind":"guardrail.escalated","data":{"guardrails":["pii"],"point":"output","decision":"deny","level":"note","why":"a name"}}`: "--:--:-- r root         guardrail.escalated  output  pii  deny  note  a name",
		`{"run":"r","agent":"root","kind":"context.transformed","data":{"hooks":["fold"],"messages":9,"sent_messages":1}}`:                                       "--:--:-- r root         context.transformed  fold  1 message instead of 9",
		`{"run":"_cluster","agent":"n1","kind":"shard.taken","data":{"pool":"home","shard":17,"why":"expired","epoch":3,"other":"n2"}}`:                          "--:--:-- cluster n1           shard.taken          home.17 expired, from n2",
		`{"run":"r","agent":"root","kind":"new.kind","data":{"x":1}}`:                                                                                            `--:--:-- r root         new.kind             {"x":1}`,
		`{"run":"r","agent":"a\u001bb","kind":"turn.started","data":"not an object"}`:                                                                            `--:--:-- r a\x1bb       turn.started         "not an object"`,
		`{"run":"r","agent":"super","kind":"warning.raised","data":{"what":"cancel","why":"enough","now":true,"live":2}}`:                                        "--:--:-- r super        warning.raised       cancel now: enough (2 agents live)",
		`{"run":"r","agent":"root","kind":"tool.finished","data":{"call":"1-0","tool":"grep","bytes":4,"text":"abcd","took_ms":7}}`:                              "--:--:-- r root         tool.finished        1-0  grep  7ms  4 bytes  abcd",
	} {
		if got := EventLine(Style{}, parseEvent(t, doc), false); got != want {
			t.Errorf("%s\n got %q\nwant %q", doc, got, want)
		}
	}
}

// No document makes a line that is not one line, whatever it holds.
func FuzzEventLine(f *testing.F) {
	for _, doc := range treeEvents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var e client.Event
		if json.Unmarshal(doc, &e) != nil {
			return
		}
		if line := EventLine(Style{}, e, true); strings.ContainsAny(line, "\n\r\x1b") {
			t.Errorf("%q", line)
		}
		var tree Tree
		tree.AddEvent(e)
		for _, line := range tree.Lines(Style{}, time.Time{}, 60, 10) {
			if strings.ContainsAny(line, "\n\r\x1b") || Width(line) > 60 {
				t.Errorf("%q", line)
			}
		}
	})
}

func TestWrapText(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"one two three", 7, []string{"one two", "three"}},
		{"one\n\ntwo", 7, []string{"one", "", "two"}},
		{"abcdefgh ij", 3, []string{"abc", "def", "gh", "ij"}},
		{"日本語", 4, []string{"日本", "語"}},
		{"日本", 1, []string{"日", "本"}},
		{"", 4, []string{""}},
		{"a  b", 9, []string{"a  b"}},
	} {
		if d := cmp.Diff(c.want, Wrap(c.text, c.width)); d != "" {
			t.Errorf("%q in %d columns: %s", c.text, c.width, d)
		}
	}
	want := []string{"goal    look at all of", "        this", "caller  cli"}
	if d := cmp.Diff(want, FormatPairs(Style{}, [][2]string{{"goal", "look at all of this"}, {"empty", ""}, {"caller", "cli"}}, 22)); d != "" {
		t.Error(d)
	}
}
