package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/model"
)

func stageList(list ...orchestrator.Stage) []orchestrator.Stage { return list }

// TestPlanForms: a plan on one line, or with a line for each step.
func TestPlanForms(t *testing.T) {
	ab := orchestrator.Stage{{Agent: "a"}, {Agent: "b"}}
	a, b, c := orchestrator.Stage{{Agent: "a"}}, orchestrator.Stage{{Agent: "b"}}, orchestrator.Stage{{Agent: "c"}}
	for _, x := range []struct {
		route, text string
		want        []orchestrator.Stage
		task        string
	}{
		{orchestrator.Chain, "a > b: Do it.", stageList(a, b), "Do it."},
		{orchestrator.Chain, "a, b>c : Do it.\nTwice.", stageList(a, b, c), "Do it.\nTwice."},
		{orchestrator.Consolidate, "a, b: Do it.", stageList(ab), "Do it."},
		{orchestrator.Consolidate, "a, b > c: Do it: now.", stageList(ab, c), "Do it: now."},
		{orchestrator.Delegate, "a: Do it.", stageList(a), "Do it."},
		{orchestrator.Chain, "Do it.\n- a: first\n- b\n=> c: last", stageList(orchestrator.Stage{{"a", "first"}}, b, orchestrator.Stage{{"c", "last"}}), "Do it."},
		{orchestrator.Consolidate, "Do it.\r\n* a: first\r\n- b\r\n=> c", stageList(orchestrator.Stage{{"a", "first"}, {"b", ""}}, c), "Do it."},
		{orchestrator.Consolidate, "- a\nDo it,\nall of it.\n  - b:", stageList(ab), "Do it,\nall of it."},
		{orchestrator.Chain, "note: - a bullet with words\n- a", stageList(a), "note: - a bullet with words"},
	} {
		p, ok := orchestrator.ParsePlan(x.route, x.text)
		if !ok || p.Task != x.task || !cmp.Equal(p.Stages, x.want) {
			t.Errorf("%s %q: %+v %v", x.route, x.text, p, ok)
		}
		if again, ok := orchestrator.ParsePlan(x.route, p.Text(x.route)); !ok || !cmp.Equal(again, p) {
			t.Errorf("%s %q: its text %q reads as %+v", x.route, x.text, p.Text(x.route), again)
		}
	}
	for _, text := range []string{"", "Do it.", "I say: do it", "Note: do it", "a >: do it", "- two words", "a:", "http://example.org"} {
		if p, ok := orchestrator.ParsePlan(orchestrator.Chain, text); ok {
			t.Errorf("%q reads as %+v", text, p)
		}
	}
}

var delegate = []model.ToolSpec{{Name: "delegate"}}

// playPlan plays a plan against children that answer through a function.
func playPlan(t *testing.T, route, prompt string, answer func(agent, task string) model.ToolResult) (model.Reply, []string) {
	t.Helper()
	messages := []model.Message{{Role: model.User, Text: prompt}}
	var tasks []string
	for turn := 1; ; turn++ {
		r, err := orchestrator.New(route).Complete(t.Context(), model.Request{Messages: messages, Tools: delegate, MaxOutput: 100}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Message.Calls) == 0 || turn > 2*orchestrator.StepsMax {
			return r, tasks
		}
		results := model.Message{Role: model.ToolRole}
		for i := range r.Message.Calls {
			c := &r.Message.Calls[i]
			c.ID = string(rune('a'+turn)) + string(rune('a'+i))
			var args struct{ Agent, Task string }
			if err := json.Unmarshal([]byte(c.Args), &args); err != nil || len(c.Args) > 32<<10 {
				t.Fatalf("%d bytes: %v", len(c.Args), err)
			}
			tasks = append(tasks, args.Agent+": "+args.Task)
			result := answer(args.Agent, args.Task)
			result.Call = c.ID
			results.Results = append(results.Results, result)
		}
		messages = append(messages, r.Message, results)
	}
}

func echoTask(agent, task string) model.ToolResult {
	return model.ToolResult{Text: agent + "(" + strings.ReplaceAll(task, "\n", " ") + ")"}
}

//behaviour:shows H2
func TestChainPassesOn(t *testing.T) {
	r, tasks := playPlan(t, orchestrator.Chain, "Do it.\n- a: first\n- b", echoTask)
	want := []string{"a: Do it.\n\nYour part: first", "b: Do it.\n\nWhat a answered:\na(Do it.  Your part: first)"}
	if !cmp.Equal(tasks, want) || r.Stop != model.StopEnd || !strings.HasPrefix(r.Message.Text, "b(Do it.  What a answered") {
		t.Errorf("%q\n%+v", tasks, r)
	}
	if r.Usage != (model.Usage{}) || !r.UsageKnown {
		t.Errorf("rules were billed: %+v", r.Usage)
	}
}

//behaviour:shows H2
func TestConsolidateGathers(t *testing.T) {
	_, tasks := playPlan(t, orchestrator.Consolidate, "a, b > c: Do it.", echoTask)
	want := []string{"a: Do it.", "b: Do it.", "c: Do it.\n\nWhat a answered:\na(Do it.)\n\nWhat b answered:\nb(Do it.)"}
	if !cmp.Equal(tasks, want) {
		t.Errorf("%q", tasks)
	}
}

// TestIncompleteStepIsMarkedInTheAnswer: a step that failed, or was cut short, makes an
// answer that is not passed off as whole.
func TestIncompleteStepIsMarkedInTheAnswer(t *testing.T) {
	with := func(bad string, r model.ToolResult) func(string, string) model.ToolResult {
		return func(agent, task string) model.ToolResult {
			if agent == bad {
				return r
			}
			return echoTask(agent, task)
		}
	}
	failed := model.ToolResult{Text: "no key", Error: true}
	cut := model.ToolResult{Text: "[stopped early: max_turns — this result is partial]\nhalf"}
	for _, x := range []struct {
		name, route, prompt, text string
		answer                    func(string, string) model.ToolResult
		asked                     int
	}{
		{"a chain ends", orchestrator.Chain, "a > b > c: x", "[incomplete: step 2, b, failed: no key; step 3, c, was not started]\n\na(x)", with("b", failed), 2},
		{"a chain goes on with a part", orchestrator.Chain, "a > b: x", "[incomplete: step 1, a, answered only in part]\n\nb(x  What a answered: [stopped early", with("a", cut), 2},
		{"the first fails", orchestrator.Chain, "a > b: x", "[incomplete: step 1, a, failed: no key; step 2, b, was not started]", with("a", failed), 1},
		{"the last fails", orchestrator.Consolidate, "a, b > c: x", "[incomplete: step 2, c, failed: no key]\n\n## a\n\na(x)\n\n## b\n\nb(x)", with("c", failed), 3},
		{"a part is missing", orchestrator.Consolidate, "a, b > c: x", "[incomplete: step 1, a, failed: no key]\n\nc(x  a gave no answer: no key  What b answered: b(x))", with("a", failed), 3},
		{"all parts are missing", orchestrator.Consolidate, "a > c: x", "[incomplete: step 1, a, failed: no key; step 2, c, was not started]", with("a", failed), 1},
		{"one of those joined", orchestrator.Consolidate, "a, b: x", "[incomplete: step 1, b, failed: no key]\n\na(x)", with("b", failed), 2},
		{"the only one", orchestrator.Delegate, "a: x", "[incomplete: step 1, a, answered only in part]\n\n[stopped early", with("a", cut), 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, tasks := playPlan(t, x.route, x.prompt, x.answer)
			if !strings.HasPrefix(r.Message.Text, x.text) || r.Stop != model.StopRefusal || len(tasks) != x.asked {
				t.Errorf("%s %q after %d delegations", r.Stop, r.Message.Text, len(tasks))
			}
		})
	}
}

// TestLargeAnswersFit: answers that are passed on fit, and say what was left out.
func TestLargeAnswersFit(t *testing.T) {
	for _, piece := range []string{"word ", "\"\\\n\t<&>", "\x01\x02", "日本語"} {
		huge := model.ToolResult{Text: strings.Repeat(piece, 96<<10/len(piece))}
		r, tasks := playPlan(t, orchestrator.Consolidate, "a, b > c: "+strings.Repeat("x", 32<<10), func(string, string) model.ToolResult { return huge })
		if last := tasks[len(tasks)-1]; !strings.Contains(last, "bytes were left out]") || !strings.Contains(last, "What b answered") {
			t.Errorf("%q: the last was told %d bytes", piece, len(last))
		}
		if n := len(r.Message.Text); n > orchestrator.AnswerBytesMax+100 {
			t.Errorf("%q: an answer of %d bytes", piece, n)
		}
	}
}

func userMessage(text string) model.Message { return model.Message{Role: model.User, Text: text} }
func assistantMessage(text string) model.Message {
	return model.Message{Role: model.Assistant, Text: text}
}

// TestHistory: a plan after an earlier conversation is the one that counts; who
// is delegated to gets the history. What people say in between is no plan.
func TestHistory(t *testing.T) {
	old := []model.Message{userMessage("a > b: x"), {Role: model.Assistant, Calls: []model.ToolCall{{ID: "1-0", Name: "delegate"}}},
		{Role: model.ToolRole, Results: []model.ToolResult{{Call: "1-0", Text: "old"}}}, assistantMessage("old")}
	r, err := orchestrator.New(orchestrator.Delegate).Complete(t.Context(), model.Request{Messages: append(old, userMessage("c: y")), Tools: delegate}, nil)
	if err != nil || len(r.Message.Calls) != 1 || r.Message.Calls[0].Args != `{"agent":"c","fork":true,"task":"y"}` {
		t.Errorf("%+v %v", r, err)
	}
	steered := append(old[:3:3], userMessage("b: hurry"))
	r, err = orchestrator.New(orchestrator.Chain).Complete(t.Context(), model.Request{Messages: steered, Tools: delegate}, nil)
	if err != nil || len(r.Message.Calls) != 1 || !strings.Contains(r.Message.Calls[0].Args, "What a answered:\\nold") {
		t.Errorf("%+v %v", r, err)
	}
	struck := append(old[:3:3], model.Message{Role: model.Assistant, Tombstone: true, Calls: []model.ToolCall{{ID: "2-0"}}})
	r, err = orchestrator.New(orchestrator.Chain).Complete(t.Context(), model.Request{Messages: struck, Tools: delegate}, nil)
	if err != nil || len(r.Message.Calls) != 1 {
		t.Errorf("%+v %v", r, err)
	}
}

// TestPlanWithoutAStepStillAnswers: there is always a text, and it is never passed off as an answer.
func TestPlanWithoutAStepStillAnswers(t *testing.T) {
	many := "x" + strings.Repeat("\n- a", orchestrator.StepsMax+1)
	for name, x := range map[string]struct {
		req  model.Request
		told string
	}{
		"no plan":        {model.Request{Messages: []model.Message{userMessage("Do it.")}, Tools: delegate}, "This is not a plan"},
		"no messages":    {model.Request{Tools: delegate}, "This is not a plan"},
		"no task":        {model.Request{Messages: []model.Message{userMessage("- a\n- b")}, Tools: delegate}, "the plan has no task"},
		"too many steps": {model.Request{Messages: []model.Message{userMessage(many)}, Tools: delegate}, "more than 32 steps"},
		"no tool":        {model.Request{Messages: []model.Message{userMessage("a: x")}}, "not offered the tool delegate"},
		"closing":        {model.Request{Messages: []model.Message{userMessage("a: x")}, Tools: delegate, NoTools: true}, "Nothing was delegated yet"},
		"closing in the middle": {model.Request{Messages: []model.Message{userMessage("a > b: x"), {Role: model.Assistant, Calls: []model.ToolCall{{ID: "1-0"}}},
			{Role: model.ToolRole, Results: []model.ToolResult{{Call: "1-0", Text: "half of it"}}}}, Tools: delegate, NoTools: true},
			"[incomplete: step 2, b, was not started]\n\nhalf of it"},
		"results are missing": {model.Request{Messages: []model.Message{userMessage("a > b: x"), {Role: model.Assistant, Calls: []model.ToolCall{{ID: "1-0"}}}},
			Tools: delegate}, "step 1, a, failed: it was never asked"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := orchestrator.New(orchestrator.Chain).Complete(t.Context(), x.req, nil)
			if err != nil || !strings.Contains(r.Message.Text, x.told) || r.Stop != model.StopRefusal || r.Message.Calls != nil {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := orchestrator.New(orchestrator.Chain).Complete(ctx, model.Request{}, nil)
	if known := (*model.Error)(nil); !errors.As(err, &known) || known.Class != model.Aborted {
		t.Error(err)
	}
}

// FuzzParse: whatever the prompt, a plan that is read reads the same again.
func FuzzParse(f *testing.F) {
	f.Add("a > b: x")
	f.Add("x\n- a: y\n=> b")
	f.Fuzz(func(t *testing.T, text string) {
		for _, route := range orchestrator.RouteNames() {
			p, ok := orchestrator.ParsePlan(route, text)
			if !ok {
				continue
			}
			if again, ok := orchestrator.ParsePlan(route, p.Text(route)); p.Task != "" && (!ok || !cmp.Equal(again.AgentNames(), p.AgentNames())) {
				t.Errorf("%q: %+v, then %+v", text, p, again)
			}
		}
	})
}
