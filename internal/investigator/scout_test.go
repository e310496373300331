package investigator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/model"
)

const task = "Investigate this repository and write report.md"

// askAgent makes one call of an agent with its own tools offered.
func askAgent(t *testing.T, agent string, messages ...model.Message) model.Reply {
	t.Helper()
	def := agentNamed(agent)
	return completeOnce(t, model.Request{System: def.System, Caller: model.Caller{Name: def.Name}, Tools: toolSpecs(def.Tools), MaxOutput: 4096, Messages: messages})
}

func completeOnce(t *testing.T, req model.Request) model.Reply {
	t.Helper()
	d := newDriver(t, nil)
	return d.completeChecked("agent", req)
}

func userMessage(text string) model.Message { return model.Message{Role: model.User, Text: text} }

// answeredCalls is an assistant message and the results of its calls.
func answeredCalls(calls []model.ToolCall, texts ...string) []model.Message {
	var results []model.ToolResult
	for i := range calls {
		calls[i].ID = fmt.Sprintf("1-%d", i)
		results = append(results, model.ToolResult{Call: calls[i].ID, Text: texts[i]})
	}
	return []model.Message{{Role: model.Assistant, Calls: calls}, {Role: model.ToolRole, Results: results}}
}

func TestInvestigatorWithoutToolsReportsNothing(t *testing.T) {
	for _, a := range investigator.BuiltinAgents() {
		reply := completeOnce(t, model.Request{System: a.System, Caller: model.Caller{Name: a.Name}, MaxOutput: 512, Messages: []model.Message{userMessage(task)}})
		if !strings.Contains(reply.Message.Text, "could see nothing") || len(reply.Message.Calls) > 0 {
			t.Errorf("%s: %q", a.Name, reply.Message.Text)
		}
	}
}

// An agent that has tools, but none that looks at a directory, says so in a sentence.
func TestInvestigatorWithoutADirectorySaysWhatIsMissing(t *testing.T) {
	tools := []model.ToolSpec{{Name: "ask_human", Class: model.Read, Schema: `{"type":"object"}`}}
	reply := completeOnce(t, model.Request{Caller: model.Caller{Name: "assistant"}, Tools: tools, MaxOutput: 512, Messages: []model.Message{userMessage("Look around")}})
	if text := reply.Message.Text; !strings.HasPrefix(text, "I was offered no tool that looks at a directory") || strings.Contains(text, "limit:") {
		t.Errorf("%q", text)
	}
}

func TestInvestigatorReportsNothingWhenEveryToolFails(t *testing.T) {
	broken := func(map[string]any) (string, bool) { return "unknown tool", true }
	tools := map[string]toolFunc{}
	for name := range directoryTools(t, t.TempDir()) {
		tools[name] = broken
	}
	d := newDriver(t, tools)
	text := d.runAgent("coordinator", task)
	if !strings.Contains(text, "could see nothing") || !strings.Contains(text, "unknown tool") {
		t.Errorf("%q", text)
	}
}

const auditHints = "Audit.\n" + `{"exts":[".go"],"files":20}`

// auditOf plays the auditor with this result for each of its searches.
func auditOf(t *testing.T, results map[string]string) string {
	t.Helper()
	first := askAgent(t, "auditor", userMessage(auditHints))
	var texts []string
	for _, c := range first.Message.Calls {
		text := "[0 matches in 0 files; 20 files searched]"
		for needle, result := range results {
			if strings.Contains(c.Args, needle) {
				text = result
			}
		}
		texts = append(texts, text)
	}
	messages := append([]model.Message{userMessage(auditHints)}, answeredCalls(first.Message.Calls, texts...)...)
	next := askAgent(t, "auditor", messages...)
	if len(next.Message.Calls) == 0 {
		return next.Message.Text
	}
	texts = nil
	for range next.Message.Calls { // the code around a line, which explains nothing
		texts = append(texts, "1\tfunc f() {\n2\t\tg()\n[lines 1-2 of 2]")
	}
	return askAgent(t, "auditor", append(messages, answeredCalls(next.Message.Calls, texts...)...)...).Message.Text
}

// parseFindings are the lines of an answer that a coordinator can merge.
func parseFindings(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			var f map[string]any
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			all = append(all, f)
		}
	}
	return all
}

func TestAFindingIsTheLineThatTheToolShowed(t *testing.T) {
	const line = "server/a.go:12:\t_ = store.Commit(ctx)\n[1 matches in 1 files; 20 files searched]"
	before := parseFindings(t, auditOf(t, map[string]string{"Unmarshal": line}))
	if len(before) != 1 {
		t.Fatalf("findings: %v", before)
	}
	want := []any{map[string]any{"path": "server/a.go", "line": 12.0, "text": "\t_ = store.Commit(ctx)"}}
	if !reflect.DeepEqual(before[0]["evidence"], want) {
		t.Errorf("evidence %v", before[0]["evidence"])
	}
	for name, changed := range map[string]string{
		"another line number": strings.Replace(line, ":12:", ":13:", 1),
		"another path":        strings.Replace(line, "server/", "client/", 1),
		"another text":        strings.Replace(line, "ctx", "context", 1),
	} {
		if after := parseFindings(t, auditOf(t, map[string]string{"Unmarshal": changed})); reflect.DeepEqual(after, before) || len(after) != 1 {
			t.Errorf("%s: the finding is still %v", name, after)
		}
	}
	for name, gone := range map[string]string{
		"the error is handled": strings.Replace(line, "_ = ", "err = ", 1),
		"vendored":             strings.Replace(line, "server/", "vendor/", 1),
		"a test":               strings.Replace(line, "a.go", "a_test.go", 1),
		"clipped":              strings.Replace(line, "(ctx)", "(ctx …[line clipped]", 1),
	} {
		if after := parseFindings(t, auditOf(t, map[string]string{"Unmarshal": gone})); len(after) != 0 {
			t.Errorf("%s: %v", name, after)
		}
	}
}

func TestMaskedLinesAreEvidenceAsTheyAre(t *testing.T) {
	got := parseFindings(t, auditOf(t, map[string]string{"PRIVATE KEY": "conf/prod.yaml:3:password: \"[masked]\"\nmain.go:9:const apiKey = \"[masked]\" // live\n[2 matches in 2 files; 20 files searched]"}))
	if len(got) != 1 || got[0]["severity"] != "high" || !strings.Contains(fmt.Sprint(got[0]["evidence"]), "[masked]") {
		t.Errorf("%v", got)
	}
}

func TestNoiseIsNotReported(t *testing.T) {
	noise := strings.Join([]string{
		`main.go:1:// password = "hunter2hunter2" is an example`,
		`main.go:2:password = "your-password-here"`,
		`docs/x.yaml:3:api_key: "${API_KEY_FROM_ENV}"`,
		`[3 matches in 2 files; 20 files searched]`}, "\n")
	if got := parseFindings(t, auditOf(t, map[string]string{"PRIVATE KEY": noise})); len(got) != 0 {
		t.Errorf("secrets: %v", got)
	}
	markers := "a.go:1:const mask = \"XXX-XXX\"\nb.go:2:supportsXXX := true // because Java has no XXX\n[2 matches in 2 files; 20 files searched]"
	if got := parseFindings(t, auditOf(t, map[string]string{"FIXME": markers})); len(got) != 0 {
		t.Errorf("markers: %v", got)
	}
}

func TestRepeatsAreOneFinding(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "pkg/f%d.go:%d:\t_ = db.Exec(q%d)\n", i%5, i+1, i)
	}
	got := parseFindings(t, auditOf(t, map[string]string{"Unmarshal": b.String() + "[240 matches in 9 files; 20 files searched; first 100 shown]"}))
	if len(got) != 1 || len(got[0]["evidence"].([]any)) != 3 || !strings.Contains(got[0]["title"].(string), "at least 8 places (5 files)") {
		t.Errorf("%v", got)
	}
}

func TestCutResultIsListedAsALimit(t *testing.T) {
	text := auditOf(t, map[string]string{
		"FIXME":     "[340 matches in 9 files; 20 files searched; first 100 shown; 2 large files skipped]",
		"Unmarshal": "a.go:1:\t_ = f.Sync()\n[clipped: 9000 bytes, read_result 7]",
		"panic":     "<html>bad gateway</html>",
	})
	for _, want := range []string{"of 340 matching lines", "2 large files skipped", "clipped: 9000 bytes", "could not be read"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestTheSameRequestHasTheSameReply(t *testing.T) {
	dir := sampleRepository(t)
	var texts, reports []string
	for range 2 {
		d := newDriver(t, directoryTools(t, dir))
		texts = append(texts, d.runAgent("coordinator", task))
		reports = append(reports, readFile(t, dir, "report.md")+readFile(t, dir, "report.json"))
	}
	if texts[0] != texts[1] || reports[0] != reports[1] {
		t.Errorf("two runs over one directory differ:\n%s\n%s\nand\n%s\n%s", texts[0], reports[0], texts[1], reports[1])
	}
}

func TestClosingTurnReportsFindings(t *testing.T) {
	tools := rememberReads(directoryTools(t, sampleRepository(t)))
	for turns := range 4 {
		d := newDriver(t, tools)
		d.turnsMax = turns
		if turns == 0 {
			d.turnsMax = -1 // the driver's 0 is no cap
		}
		text := d.runAgent("coordinator", task)
		if turns > 0 && !strings.Contains(text, "report.md was not written: the run was closing") && turns < 3 {
			t.Errorf("%d turns: %s", turns, text)
		}
		if !strings.Contains(text, "not an LLM") {
			t.Errorf("%d turns: %s", turns, text)
		}
	}
}

func TestAClosingChildStillAnswersInLinesThatMerge(t *testing.T) {
	first := askAgent(t, "auditor", userMessage(auditHints))
	texts := make([]string, len(first.Message.Calls))
	for i := range texts {
		texts[i] = "a.go:3:\tpanic(err)\n[1 matches in 1 files; 20 files searched]"
	}
	def := agentNamed("auditor")
	messages := append([]model.Message{userMessage(auditHints)}, answeredCalls(first.Message.Calls, texts...)...)
	reply := completeOnce(t, model.Request{System: def.System, Caller: model.Caller{Name: def.Name}, Tools: toolSpecs(def.Tools), NoTools: true, MaxOutput: 768,
		Messages: append(messages, userMessage("Stop here: the limit on tokens is reached."))})
	if got := parseFindings(t, reply.Message.Text); len(got) != 1 || got[0]["title"] != "panic on an error in 1 place" {
		t.Errorf("%s", reply.Message.Text)
	}
	early := completeOnce(t, model.Request{System: def.System, Caller: model.Caller{Name: def.Name}, Tools: toolSpecs(def.Tools), NoTools: true, MaxOutput: 768, Messages: []model.Message{userMessage(auditHints)}})
	if !strings.Contains(early.Message.Text, "could see nothing") || !strings.Contains(early.Message.Text, "limit: ") {
		t.Errorf("%s", early.Message.Text)
	}
}

func TestChildrenThatFailAreLimits(t *testing.T) {
	dir := sampleRepository(t)
	tools := directoryTools(t, dir)
	tools["delegate"] = func(args map[string]any) (string, bool) {
		switch args["agent"] {
		case "historian":
			return "no child could be had: depth 3", true
		case "auditor":
			return "[stopped early: max_turns — this result is partial]\nauditor: 1 claim\n" +
				`{"kind":"risky-call","severity":"medium","title":"panic on an error","evidence":[{"path":"a.go","line":2,"text":"panic(err)"}]}`, false
		case "cartographer":
			return "I am a poem, not a finding. {\"kind\":7}", false
		}
		return "", false
	}
	d := newDriver(t, tools)
	d.runAgent("coordinator", task)
	report := readFile(t, dir, "report.md")
	for _, want := range []string{"historian: could not be had: no child could be had: depth 3", "auditor stopped early (max_turns)",
		"panic on an error", "cartographer gave no machine-readable finding", "dependencies: delegate gave an empty result"} {
		if !strings.Contains(report, want) {
			t.Errorf("no %q in\n%s", want, report)
		}
	}
}

func TestInvestigatorContinuesAfterCorrections(t *testing.T) {
	look := askAgent(t, "coordinator", userMessage(task)).Message.Calls
	messages := append([]model.Message{userMessage(task)}, answeredCalls(look, "main.go\t40\n", "main.go\n[1 files, 40 bytes]\n[extensions: .go 1 40]\n[largest: main.go 40]")...)
	messages = append(messages, userMessage("You were cut off. Continue from where you stopped."), model.Message{Role: model.Assistant, Text: "junk", Tombstone: true})
	reply := askAgent(t, "coordinator", messages...)
	if len(reply.Message.Calls) != 4 || reply.Message.Calls[0].Name != "delegate" {
		t.Errorf("%+v", reply.Message)
	}
}

func TestACanceledCallIsAborted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := investigator.New().Complete(ctx, model.Request{MaxOutput: 64}, nil)
	if e, ok := err.(*model.Error); !ok || e.Class != model.Aborted {
		t.Errorf("%v", err)
	}
}
