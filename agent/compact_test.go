package agent_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// The last turn of a run needs no compaction if it fits as it is: a summary
// would cost what the last word is to be paid from.
func TestTheLastTurnIsNotCompactedIfItFits(t *testing.T) {
	task := readerTask(8000)
	task.Limits.Turns, task.LoopOptions.Context.Tail = 2, 1
	r := readText(t, task)
	r.callTool("list", "one, two")
	r.callTool("read", strings.Repeat("one ", 4500)) // above 70 %, below the window
	if !r.request.NoTools || r.told != "" || r.s.Fold.Upto > 0 || r.s.Ladder != (agent.State{}).Ladder {
		t.Errorf("closing %v, %d messages folded, %+v", r.request.NoTools, r.s.Fold.Upto, r.s.Ladder)
	}
}

// A summary that is cut off, refused, empty or full of calls is none: lines of
// the messages stand there (D4).
func TestUnusableSummaryIsReplacedByExcerpts(t *testing.T) {
	for name, reply := range map[string]model.Reply{
		"cut off": {Stop: model.StopMaxOutput, Message: model.Message{Text: "HALF A SUMMARY"}},
		"refused": {Stop: model.StopRefusal, Message: model.Message{Text: "HALF A SUMMARY"}},
		"calls":   {Stop: model.StopTools, Message: model.Message{Text: "HALF A SUMMARY", Calls: []model.ToolCall{{Name: "read"}}}},
		"blank":   {Stop: model.StopEnd, Message: model.Message{Text: " \n"}},
	} {
		r := readText(t, readerTask(4000))
		r.summary = func(e agent.CallModel) agent.Fact { return agent.Replied{Reservation: e.Reservation, Reply: reply} }
		r.fillWindow()
		if f := r.s.Fold; !f.Plain || strings.Contains(f.Text, "HALF") || !strings.Contains(f.Text, "agent calls read") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	r := readText(t, readerTask(4000))
	r.summary = func(e agent.CallModel) agent.Fact {
		return agent.Replied{Reservation: e.Reservation, Reply: model.Reply{Stop: model.StopEnd, Message: model.Message{Text: "A WHOLE SUMMARY"}}}
	}
	if r.fillWindow(); r.s.Fold.Plain || !strings.Contains(r.s.Fold.Text, "A WHOLE SUMMARY") {
		t.Errorf("%+v", r.s.Fold)
	}
}

// Where the model for summaries fails, the agent's own is asked once, except for
// a text that was too long: it is no shorter for another one.
func TestFailedSummaryIsRetriedOnceByTheAgentsOwnModel(t *testing.T) {
	for class, want := range map[model.ErrorClass]string{
		model.Overload: "script/cheap script/one", model.Auth: "script/cheap script/one", model.TooLong: "script/cheap",
	} {
		task := readerTask(4000)
		task.LoopOptions.Context.Model = &spec.Model{Name: "script/cheap"}
		r, asked := readText(t, task), []string{}
		r.summary = func(e agent.CallModel) agent.Fact {
			asked = append(asked, e.Model)
			return agent.Failed{Reservation: e.Reservation, Class: class}
		}
		r.fillWindow()
		if got := strings.Join(asked, " "); got != want {
			t.Errorf("%s: %s, want %s", class, got, want)
		}
	}
}

// A reservation for a summary by a cheap model keeps back what a closing turn by the
// agent's own would cost (G1).
func TestSummaryReservationKeepsClosingTurnAtAgentModelPrice(t *testing.T) {
	task := readerTask(4000)
	task.Model.Price = budget.Price{Known: true, Input: 100, Output: 7}
	task.LoopOptions.Context.Model = &spec.Model{Name: "script/cheap", Price: budget.Price{Known: true, Input: 1, Output: 9}}
	r := readText(t, task)
	r.summary = func(e agent.CallModel) agent.Fact {
		return agent.Replied{Reservation: e.Reservation, Reply: model.Reply{Message: model.Message{Text: "A summary."}}}
	}
	r.fillWindow()
	if p := r.ask.Price; !p.Known || p.Input != 100 || p.Output != 9 {
		t.Errorf("%+v", p)
	}
}

// What a provider reported was about a prompt that is no more (D1).
func TestCompactionResetsTheReportedSize(t *testing.T) {
	r := readText(t, readerTask(8000))
	r.usage = model.Usage{Input: 1000, Output: 10}
	for range 12 {
		r.callTool("read", "page")
	}
	if r.s.Anchor.Tokens == 0 || r.s.Fold.Upto > 0 {
		t.Fatalf("%+v", r.s.Anchor)
	}
	r.usage = model.Usage{Input: 5900, Output: 10}
	r.callTool("read", "page")
	if r.s.Fold.Upto == 0 || r.s.Anchor != (agent.State{}).Anchor || r.s.Estimate() > 5900 {
		t.Errorf("%d folded, anchor %+v, an estimate of %d", r.s.Fold.Upto, r.s.Anchor, r.s.Estimate())
	}
}

// Hooks decide what a provider is sent. A history that was recalled was never
// before them: no model is told of it for a summary.
func TestSummaryOmitsHistoryThatHooksHaveNotSeen(t *testing.T) {
	past := []model.Message{{Role: model.User, Text: "go"}}
	for range 30 {
		past = append(past, model.Message{Role: model.Assistant, Text: strings.Repeat("a secret ", 60)}, model.Message{Role: model.User, Text: "more"})
	}
	for point, asked := range map[spec.HookPoint]bool{spec.HookContext: false, spec.HookInput: false, spec.HookPostTool: true} {
		task := readerTask(4000)
		task.LoopOptions.Hooks = []spec.Hook{{Name: "masks", Point: point}}
		r := readText(t, task, agent.Recalled{Past: "p", Messages: past})
		if r.s.Fold.Upto == 0 || (r.told != "") != asked {
			t.Errorf("a hook at %s: %d folded, a model was told: %v", point, r.s.Fold.Upto, r.told != "")
		}
	}
}

// A result that is required evidence and the newest of its tool is pinned once.
func TestAResultIsPinnedOnce(t *testing.T) {
	task := readerTask(4000)
	task.LoopOptions.Require.Evidence = []spec.Evidence{{Tool: "list", Contains: "INVOICE"}, {Tool: "list"}}
	r := readText(t, task)
	r.callTool("list", "the INVOICE")
	r.fillWindow()
	if n := strings.Count(r.s.Fold.Text, "## Newest result of list"); n != 1 {
		t.Errorf("pinned %d times:\n%s", n, r.s.Fold.Text)
	}
}

// A constraint stands in the prompt once: in the system prompt, which is never
// folded, or else in the fold.
func TestCompactionRepeatsNoConstraint(t *testing.T) {
	task := readerTask(4000)
	task.Constraints = []string{"You look.", "Pay nothing."}
	r := readText(t, task)
	r.fillWindow()
	if text := r.s.Fold.Text; strings.Contains(text, "You look.") || !strings.Contains(text, "Pay nothing.") {
		t.Errorf("%s", text)
	}
}

// What was learned of one model holds for no other: neither how it counts, nor
// how much it takes (D1).
func TestModelChangeResetsTokenMeasurements(t *testing.T) {
	task := readerTask(100_000)
	task.LoopOptions.Fallbacks = []spec.Model{{Name: "script/two", Window: 100_000}}
	r := readText(t, task)
	r.callTool("read", strings.Repeat("some words of a page ", 200))
	before := r.s.Estimate()
	r.usage = model.Usage{Input: 3 * before, Output: 10}
	r.callTool("list", "one, two")
	if got := r.s.Estimate(); got < 2*before {
		t.Fatalf("an estimate of %d after a report of %d", got, 3*before)
	}
	r.stepThrough(agent.Failed{Reservation: r.s.Reservation, Class: model.Auth})
	if got := r.s.Estimate(); r.s.Route != 1 || got > before+before/4 {
		t.Errorf("model %d: an estimate of %d, before any report it was %d", r.s.Route, got, before)
	}
}

// What hooks made of a prompt says nothing of how the prompt is counted.
func TestPromptChangedByHooksIsNoTokenMeasurement(t *testing.T) {
	task := readerTask(100_000)
	task.LoopOptions.Hooks = []spec.Hook{{Name: "masks", Point: spec.HookContext}}
	r := &reading{t: t, hook: func(e agent.RunHooks) agent.Fact {
		return agent.Hooked{ID: e.ID, Point: e.Point, Answers: []spec.HookAnswer{{Hook: "masks", Messages: []model.Message{{Role: model.User, Text: "masked"}}}}}
	}}
	r.beginTask(task)
	r.usage = model.Usage{Input: 90_000, Output: 10}
	for range 3 {
		r.callTool("read", strings.Repeat("some words of a page ", 100))
	}
	if r.s.Sense != (agent.State{}).Sense || r.s.Anchor != (agent.State{}).Anchor || r.s.Estimate() > 3000 {
		t.Errorf("%+v, %+v, an estimate of %d", r.s.Sense, r.s.Anchor, r.s.Estimate())
	}
}

// A compaction begins early enough for the reply to fit behind the prompt,
// however much output is asked for.
func TestThereIsRoomForTheReply(t *testing.T) {
	task := readerTask(5000)
	task.Limits.Output = 3000
	r := readText(t, task)
	for range 30 {
		r.callTool("read", strings.Repeat("some words of a page ", 40))
		if size := r.s.Estimate(); size+3000 > 5000 && r.s.Ladder.Used < spec.RecoveriesMax {
			t.Fatalf("turn %d: a prompt of %d tokens leaves no room for a reply of 3000 in 5000", r.s.Turn, size)
		}
	}
}
