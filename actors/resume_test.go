package actors_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// A node that stops in the middle of a call of each class, and another that
// takes up the run: what each class promises.
func TestNextOwnerContinuesCallsOfEachClass(t *testing.T) {
	for _, c := range []struct {
		class model.Class
		times int32 // that the tool is begun in all
		parks bool
	}{
		{model.Read, 2, false},
		{model.Idempotent, 2, false},
		{model.Effect, 1, true},
	} {
		t.Run(string(c.class), func(t *testing.T) {
			post := memory.New(memory.Config{})
			var times atomic.Int32
			inside := make(chan struct{}, 2)
			work := echoTool{name: "work", class: c.class, call: func(ctx context.Context, call tool.Call) (tool.Result, error) {
				if times.Add(1) == 1 {
					inside <- struct{}{}
					<-ctx.Done() // the process ends while the call is under way
				}
				return tool.Result{Text: "worked, attempt 2"}, nil
			}}
			text := `{agents: {boss: [{calls: [{name: work}]}, {text: "{{last}}"}]}}`
			first := playRun(t, post, 1, text, work)
			if err := first.node.Open(context.Background(), openedRun("r1", work)); err != nil {
				t.Fatal(err)
			}
			<-inside
			first.node.Stop()

			second := playRun(t, post, 2, text, work)
			if err := second.node.Resume(context.Background(), "r1"); err != nil {
				t.Fatal(err)
			}
			if c.parks {
				query := second.awaitEvent(event.KindQueryAsked).Data.(event.AgentParked)
				if query.Reason != spec.ResumeUnsafe || query.Call != "1-0" {
					t.Fatalf("asked: %+v", query)
				}
				answer := agent.Answered{Query: query.Query, Decision: "text", Text: "it worked"}
				if err := second.node.Command(context.Background(), mailbox.At("r1", "root"), "a1", answer.Kind(), answer); err != nil {
					t.Fatal(err)
				}
			}
			if r := second.awaitResult(); r.Reason != spec.Completed || r.Budget.Reserved != 0 {
				t.Fatalf("result: %+v", r)
			}
			if n := times.Load(); n != c.times {
				t.Fatalf("the tool was begun %d times, want %d", n, c.times)
			}
		})
	}
}

// A shell that panics is started again from its log; the run does not notice.
func TestPanickingShellIsRestartedFromItsLog(t *testing.T) {
	var times atomic.Int32
	fragile := echoTool{name: "look", class: model.Read}
	client := clientFunc(func(ctx context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
		if len(r.Messages) > 1 {
			return sayReply("done"), nil
		}
		return model.Reply{Message: model.Message{Role: model.Assistant, Calls: []model.ToolCall{{Name: "look", Args: "{}"}}}, UsageKnown: true}, nil
	})
	s := playClient(t, memory.New(memory.Config{}), 1, client, fragile)
	s.onEvent = func(kind string) {
		if kind == event.KindToolStarted && times.Add(1) == 1 {
			panic("an observer that crashes the shell")
		}
	}
	if err := s.node.Open(context.Background(), openedRun("r1", fragile)); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Reason != spec.Completed {
		t.Fatalf("result: %+v\n%s", r, s.eventKinds())
	}
}

// A node that takes over an agent in the middle of its work says so, once; a shell that begins says nothing.
//
//behaviour:shows I1
func TestARestartIsPublishedOnce(t *testing.T) {
	post, gate := memory.New(memory.Config{}), make(chan struct{})
	first := playRun(t, post, 1, waits, slowEcho(gate), delegate)
	openRun(t, first, openedRun("r1", slowEcho(gate), delegate))
	first.awaitEvent(event.KindToolStarted)
	first.node.Stop()
	close(gate)
	second := playRun(t, post, 2, waits, slowEcho(gate), delegate)
	if err := second.node.Resume(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	q := second.awaitEvent(event.KindQueryAsked).Data.(event.AgentParked)
	sendCommand(t, second, "r1.root", "a1", agent.Answered{Query: q.Query, Decision: "approve"})
	second.awaitResult()
	var resumed, restarted []event.Published
	for _, e := range second.events {
		switch e.Kind {
		case event.KindAgentResumed:
			resumed = append(resumed, e)
		case event.KindAgentRestarted:
			restarted = append(restarted, e)
		}
	}
	if len(resumed) != 1 || len(restarted) != 1 || strings.Contains(first.eventKinds(), event.KindAgentRestarted) {
		t.Fatalf("resumed %+v, restarted %+v; before: %s", resumed, restarted, first.eventKinds())
	}
	r, at := resumed[0], restarted[0]
	if want := fmt.Sprintf("r1.root#restarted.%d", r.Seq); at.ID != want || at.Seq != 0 || at.TS != r.TS || at.Data != r.Data || at.Node != r.Node || at.Agent != "root" {
		t.Errorf("%+v does not fit %+v", at, r)
	}
}

type clientFunc func(context.Context, model.Request, func(model.Delta)) (model.Reply, error)

func (f clientFunc) Complete(ctx context.Context, r model.Request, emit func(model.Delta)) (model.Reply, error) {
	return f(ctx, r, emit)
}

func sayReply(text string) model.Reply {
	return model.Reply{Message: model.Message{Role: model.Assistant, Text: text}, UsageKnown: true,
		Usage: model.Usage{Input: 10, Output: 5}}
}
