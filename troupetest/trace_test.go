package troupetest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/troupetest"
)

// failures records the errors of assertions in place of a test.
type failures struct {
	testing.TB
	found []string
}

func (f *failures) Helper()                   {}
func (f *failures) Errorf(s string, a ...any) { f.found = append(f.found, fmt.Sprintf(s, a...)) }

// check compares the errors with a part of each.
func (f *failures) check(t *testing.T, want []string) {
	t.Helper()
	if len(f.found) != len(want) {
		t.Fatalf("%q", f.found)
	}
	for i, text := range want {
		if !strings.Contains(f.found[i], text) {
			t.Errorf("%q, want %q", f.found[i], text)
		}
	}
}

// Every assertion fails where it should, and says what it found.
func TestAssertionsFail(t *testing.T) {
	f := &failures{TB: t}
	n := troupetest.Start(f, shop(), shopReplies)
	tr := n.Run(troupe.Task{Prompt: "Do we need bolts?"})
	tr.AssertCompleted("Order ten")
	tr.AssertParked("order")
	tr.AssertCalls("stock", 2)
	tr.AssertOrder(event.KindRunStarted, event.KindToolFinished, event.KindQueryAsked)
	n.CrashAt(1000)
	n.Run(troupe.Task{Prompt: "Do we need bolts?"})
	limited := n.Run(troupe.Task{Prompt: "Do we need bolts?", MaxTurns: 1})
	limited.AssertCompleted("")
	want := []string{
		`the answer is "Order none: They are dear.", without "Order ten"`,
		`the run does not wait for a person: <nil>`,
		`1 calls of stock, want 2`,
		`no query.asked after [run.started tool.finished]`,
		`before the crash at entry 1000`,
		`the run did not complete: troupe: the run did not complete`,
	}
	f.check(t, want)
}

// A test that is wrong fails, and says what is wrong: crashes that cannot happen, a script for other agents, and a run
// that does not end.
func TestMistakesOfATestFailIt(t *testing.T) {
	f := &failures{TB: t}
	cfg := shop()
	cfg.Tools = []tool.Tool{tool.Func("stock", "How many are in stock.", model.Read, func(ctx context.Context, _ article) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})}
	n := troupetest.Start(f, cfg, shopReplies)
	for _, entries := range [][]int{{0}, {-1}, {8, 3}, {3, 3}} {
		n.CrashAt(entries...)
	}
	n.LimitRuns(100 * time.Millisecond)
	if tr := n.Run(troupe.Task{Prompt: "Do we need bolts?"}); tr.Crashes != 0 || tr.Err == nil {
		t.Errorf("%d crashes, %v", tr.Crashes, tr.Err)
	}
	troupetest.Start(f, shop(), `agents: {clark: [{text: "Order none."}]}`).Run(troupe.Task{Prompt: "Do we need bolts?"})
	f.check(t, []string{"CrashAt([0])", "CrashAt([-1])", "CrashAt([8 3])", "CrashAt([3 3])", "took longer than 100ms", `no replies for agent "clerk"`})
}

// A run that asks a person is parked; after the answer the next Run of the same id returns its end.
func TestAParkedRunContinuesAfterTheAnswer(t *testing.T) {
	n := troupetest.Start(t, troupe.Config{Agents: []troupe.Agent{{Name: "painter", Description: "Paints."}}}, `
agents: {painter: [{calls: [{name: ask_human, args: {question: "Which color?"}}]}, {text: "Painted. {{last}}"}]}`)
	task := troupe.Task{RunID: client.NewID(), Prompt: "Paint the door"}
	n.Run(task).AssertParked("Which color?")
	questions, err := n.Client().Questions(t.Context())
	if err != nil || len(questions) != 1 {
		t.Fatalf("%v, %v", questions, err)
	}
	if err := n.Client().Answer(t.Context(), client.AnswerRequest{RunID: task.RunID, Query: questions[0].Query, Decision: "text", Text: "blue"}); err != nil {
		t.Fatal(err)
	}
	tr := n.Run(task)
	tr.AssertCompleted("blue")
	tr.AssertOrder(event.KindQueryAsked, event.KindQueryAnswered)
	if !slices.ContainsFunc(tr.Events, func(e troupe.Event) bool { _, typed := e.Data.(event.QueryAnswered); return typed }) {
		t.Error("the events have no data of Go types")
	}
}
