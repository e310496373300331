package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/model"
)

// gatedModel is a model that says which run asks, and answers one after the other. Who
// is to "ask" puts a question to a person first.
type gatedModel struct{ begun, pass chan string }

func newGatedModel() gatedModel { return gatedModel{make(chan string, 64), make(chan string, 64)} }

func (w gatedModel) Complete(ctx context.Context, req model.Request, _ func(model.Delta)) (model.Reply, error) {
	goal := req.Messages[0].Text
	say := func(m model.Message) (model.Reply, error) {
		m.Role = model.Assistant
		return model.Reply{Message: m, Stop: model.StopEnd, UsageKnown: true, Usage: model.Usage{Input: 1, Output: 1}}, nil
	}
	if len(req.Messages) == 1 && goal == "ask" {
		return say(model.Message{Calls: []model.ToolCall{{ID: "1", Name: "ask_human", Args: `{"question":"Which?"}`}}})
	}
	w.begun <- goal
	select {
	case <-w.pass:
		return say(model.Message{Text: "done " + goal})
	case <-ctx.Done():
		return model.Reply{}, ctx.Err()
	}
}

func (w gatedModel) startNode(t *testing.T, state string, live, queued int) (*Node, *client.Client) {
	t.Helper()
	h := startNode(t, state, func(c *Config) {
		c.MaxLiveRuns, c.MaxQueuedRuns, c.ResumeAll = live, queued, true
		c.Contributions.Agents = []agentfile.Definition{{Name: "one", Description: "Does it."}}
		c.Contributions.Models, c.Model = map[string]model.Client{"own/wait": w}, "own/wait"
	})
	return h, connectClient(t, h)
}

func (w gatedModel) expectBegun(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case goal := <-w.begun:
			got = append(got, goal)
		case <-time.After(patience):
			t.Fatalf("of %v only %v began", want, got)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%v began, and not %v", got, want)
	}
}

func openRuns(t *testing.T, c *client.Client, goals ...string) {
	t.Helper()
	for _, goal := range goals {
		if _, err := c.Run(testContext(t), client.RunRequest{RunID: "run-" + goal, Prompt: goal, Agent: "one"}); err != nil {
			t.Fatal(err)
		}
	}
}

// waitForState waits until a run has a state, and returns its place in the queue.
func waitForState(t *testing.T, c *client.Client, goal string, state client.RunState) int {
	t.Helper()
	for late := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		info, err := c.Get(testContext(t), "run-"+goal)
		if err == nil && info.State == state {
			return info.Position
		}
		if err != nil || time.Now().After(late) {
			t.Fatalf("run %s is %q, and not %s: %v", goal, info.State, state, err)
		}
	}
}

// TestRunsBeyondTheLimitAreQueued: in their logs, in order, with their place told; one
// begins when one ends, and a queued one can be canceled.
//
//behaviour:shows G5
func TestRunsBeyondTheLimitAreQueued(t *testing.T) {
	t.Parallel()
	w := newGatedModel()
	_, c := w.startNode(t, t.TempDir(), 2, 4)
	events := make(chan client.Event, 1024)
	stop, err := c.Watch(func(e client.Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	openRuns(t, c, "a", "b")
	w.expectBegun(t, "a", "b")
	for i, goal := range []string{"c", "d", "e", "f"} {
		openRuns(t, c, goal)
		if at := waitForState(t, c, goal, client.RunQueued); at != i+1 {
			t.Errorf("run %s is at place %d, and not %d", goal, at, i+1)
		}
	}
	_, err = c.Run(testContext(t), client.RunRequest{RunID: "run-g", Prompt: "g"})
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != client.CodeLimit || refused.Hint == "" {
		t.Errorf("beyond the queue a run is answered with %v", err)
	}
	list, err := c.List(testContext(t))
	if err != nil || len(list) != 6 || list[0].State != client.RunQueued || list[0].Position != 4 || list[5].State != client.RunLive {
		t.Errorf("the list is %+v: %v", list, err)
	}
	if _, err := c.Cancel(testContext(t), client.CancelRequest{RunID: "run-d", Why: "not needed"}); err != nil {
		t.Fatal(err)
	}
	info, err := c.Wait(testContext(t), "run-d")
	if err != nil || info.Result == nil || info.Result.Subtype != "error_cancelled" || info.Result.Usage.Total() != 0 {
		t.Errorf("a queued run that was canceled ends as %+v: %v", info.Result, err)
	}
	for _, next := range []string{"c", "e", "f"} {
		w.pass <- "one"
		w.expectBegun(t, next)
	}
	w.pass <- "one"
	w.pass <- "one"
	for _, goal := range []string{"a", "b", "c", "e", "f"} {
		if info, err := c.Wait(testContext(t), "run-"+goal); err != nil || info.Result.Text != "done "+goal {
			t.Errorf("run %s: %+v %v", goal, info.Result, err)
		}
	}
	told := 0
	for e := range events {
		if e.Kind == event.KindRunQueued {
			if told++; told == 4 {
				break
			}
		}
	}
}

// TestTheQueueOutlivesItsNode: the next owner of the logs begins queued runs in the same
// order, after those that were live.
//
//behaviour:shows G5
func TestTheQueueOutlivesItsNode(t *testing.T) {
	t.Parallel()
	w, state := newGatedModel(), t.TempDir()
	h, c := w.startNode(t, state, 1, 10)
	openRuns(t, c, "z", "y", "x", "w") // not in the order of their names
	w.expectBegun(t, "z")
	waitForState(t, c, "w", client.RunQueued)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	w = newGatedModel()
	_, c = w.startNode(t, state, 1, 10)
	for i, goal := range []string{"z", "y", "x", "w"} {
		w.expectBegun(t, goal)
		if i < 3 {
			if at := waitForState(t, c, "w", client.RunQueued); at != 3-i {
				t.Errorf("with %s live the last is at place %d", goal, at)
			}
		}
		w.pass <- "one"
	}
	if info, err := c.Wait(testContext(t), "run-w"); err != nil || info.Result.Text != "done w" {
		t.Errorf("%+v %v", info.Result, err)
	}
}

// TestARequestToAQueuedRunDoesNotBeginItAfterARestart: a budget is the newest entry of an
// unread log, and a steer the only entry of its agent's log; the run keeps its place.
func TestARequestToAQueuedRunDoesNotBeginItAfterARestart(t *testing.T) {
	t.Parallel()
	w, state := newGatedModel(), t.TempDir()
	h, c := w.startNode(t, state, 1, 10)
	openRuns(t, c, "z", "y", "x", "w")
	w.expectBegun(t, "z")
	waitForState(t, c, "w", client.RunQueued)
	for _, goal := range []string{"y", "w"} {
		if err := c.Steer(testContext(t), client.SteerRequest{RunID: "run-" + goal, Text: "Hurry."}); err != nil {
			t.Fatal(err)
		}
		if err := c.Budget(testContext(t), client.BudgetRequest{RunID: "run-" + goal, Patch: true, Limits: spec.RunLimits{Calls: 77}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	w = newGatedModel()
	_, c = w.startNode(t, state, 1, 10)
	w.expectBegun(t, "z")
	for i, goal := range []string{"y", "x", "w"} {
		if at := waitForState(t, c, goal, client.RunQueued); at != i+1 {
			t.Errorf("run %s is at place %d, and not %d", goal, at, i+1)
		}
	}
	for _, goal := range []string{"y", "y", "x", "w", "w"} { // those that were steered have another turn
		w.pass <- "one"
		w.expectBegun(t, goal)
	}
	w.pass <- "one"
	info, err := c.Wait(testContext(t), "run-w")
	if err != nil || info.Result == nil || info.Result.Text != "done w" {
		t.Fatalf("%+v %v", info.Result, err)
	}
}

// TestAParkedRunHoldsNoPlace: while others are queued it leaves memory, and when it is
// answered it goes on, however many are live.
func TestAParkedRunHoldsNoPlace(t *testing.T) {
	t.Parallel()
	w := newGatedModel()
	_, c := w.startNode(t, t.TempDir(), 1, 10)
	openRuns(t, c, "ask", "b")
	waitForState(t, c, "ask", client.RunParked)
	w.expectBegun(t, "b")
	q, err := c.Questions(testContext(t))
	if err != nil || len(q) != 1 {
		t.Fatalf("%+v %v", q, err)
	}
	if err := c.Answer(testContext(t), client.AnswerRequest{RunID: "run-ask", Query: q[0].Query, Decision: "text", Text: "this"}); err != nil {
		t.Fatal(err)
	}
	w.expectBegun(t, "ask")
	w.pass <- "one"
	w.pass <- "one"
	for _, goal := range []string{"ask", "b"} {
		if info, err := c.Wait(testContext(t), "run-"+goal); err != nil || info.State != client.RunFinished {
			t.Errorf("run %s: %+v %v", goal, info, err)
		}
	}
}
