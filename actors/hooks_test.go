package actors_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// playHooked is play with hooks in Go.
func playHooked(t *testing.T, post mailbox.Post, lease uint64, text string, hooks map[string]hook.Func, tools ...tool.Tool) *testNode {
	t.Helper()
	sc, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	client := sc.Client("")
	return stageOf(t, actors.Config{Name: "test", Post: post, Lease: lease, Hooks: hooks,
		Model: func(string) (model.Client, string, error) { return client, "m", nil },
		Tools: func(spec.Task) (*tool.Set, error) { return set, nil },
	})
}

// hookedRun is opened with hooks for all agents of the run.
func hookedRun(run string, hooks []spec.Hook, tools ...tool.Tool) supervisor.Opened {
	o := openedRun(run, tools...)
	o.LoopOptions.Hooks = hooks
	return o
}

// firedHooks are the answers of hooks that observers were told of.
func (s *testNode) firedHooks() map[string]event.HookFired {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]event.HookFired{}
	for _, e := range s.events {
		if f, ok := e.Data.(event.HookFired); ok {
			all[f.Hook] = f
		}
	}
	return all
}

// Command lines at the gate of a call: one that refuses, one that hangs, one
// that crashes. Only the one that refuses decides.
func TestACommandHookRefusesACall(t *testing.T) {
	var paid atomic.Int32
	pay := echoTool{name: "pay", class: model.Effect, call: func(context.Context, tool.Call) (tool.Result, error) {
		paid.Add(1)
		return tool.Result{Text: "paid"}, nil
	}}
	look := echoTool{name: "look", class: model.Read}
	s := playRun(t, memory.New(memory.Config{}), 1, `
agents:
  boss:
    - calls: [{name: look}, {name: pay, args: {sum: 5}}]
    - text: "{{result.0}}; {{result.1}}"
`, look, pay)
	o := hookedRun("r1", []spec.Hook{
		{Name: "slow", Point: spec.HookPreTool, Command: `sleep 60`, TimeoutMS: 50},
		{Name: "broken", Point: spec.HookPreTool, Command: `echo no >&2; exit 1`},
		{Name: "purse", Point: spec.HookPreTool, Tools: "pay", Command: `grep -q '"sum":5' && { echo "5 is too much" >&2; exit 2; }; exit 0`},
	}, look, pay)
	if err := s.node.Open(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	r := s.awaitResult()
	if r.Reason != spec.Completed || r.Text != "echo {}; denied by hook purse: 5 is too much" || paid.Load() != 0 {
		t.Fatalf("paid %d times, result: %+v", paid.Load(), r)
	}
	f := s.firedHooks()
	if f["slow"].Failed != "timed out after 50ms" || f["broken"].Failed != "exit code 1; stderr: no" || f["purse"].Decision != spec.HookDeny {
		t.Errorf("fired: %+v", f)
	}
}

// The process dies while a hook is asked: the next owner asks it again, once,
// and what it says then counts. What has been answered is never asked again.
func TestNextOwnerRerunsUnansweredHook(t *testing.T) {
	post := memory.New(memory.Config{})
	var asked, paid atomic.Int32
	inside := make(chan string, 8)
	pay := echoTool{name: "pay", class: model.Idempotent, call: func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if paid.Add(1) == 1 {
			inside <- "tool"
			<-ctx.Done() // the process ends while the call is under way
		}
		return tool.Result{Text: "paid"}, nil
	}}
	hooks := map[string]hook.Func{"gate": func(ctx context.Context, c hook.Call) (spec.HookAnswer, error) {
		if asked.Add(1) == 1 {
			inside <- "gate"
			<-ctx.Done() // the process ends before it has answered
		}
		return spec.HookAnswer{Decision: spec.HookAllow, Args: `{"sum":4}`}, nil
	}}
	text := `{agents: {boss: [{calls: [{name: pay, args: {sum: 5}}]}, {text: "{{last}}"}]}}`
	first := playHooked(t, post, 1, text, hooks, pay)
	if err := first.node.Open(context.Background(), hookedRun("r1", []spec.Hook{{Name: "gate", Point: spec.HookPreTool}}, pay)); err != nil {
		t.Fatal(err)
	}
	if at := <-inside; at != "gate" {
		t.Fatalf("first it was in the %s", at)
	}
	first.node.Stop()

	second := playHooked(t, post, 2, text, hooks, pay)
	if err := second.node.Resume(context.Background(), "r1"); err != nil {
		t.Fatal(err)
	}
	if at := <-inside; at != "tool" {
		t.Fatalf("then it was in the %s", at)
	}
	second.node.Stop()

	third := playHooked(t, post, 3, text, hooks, pay)
	if err := third.node.Resume(context.Background(), "r1"); err != nil {
		t.Fatal(err)
	}
	if r := third.awaitResult(); r.Reason != spec.Completed || r.Text != "paid" {
		t.Fatalf("result: %+v", r)
	}
	if asked.Load() != 2 || paid.Load() != 2 {
		t.Errorf("asked %d times, begun %d times, want 2 and 2", asked.Load(), paid.Load())
	}
}

// A stop hook sends an answer back until it is content.
//
//behaviour:shows A17
func TestAStopHookSendsAnAnswerBack(t *testing.T) {
	s := playRun(t, memory.New(memory.Config{}), 1, `
agents:
  boss:
    - text: It is red.
    - text: "It is red. Evidence: ci.log:42"
`)
	check := `grep -q Evidence: || { echo '{"decision":"block","reason":"Name the evidence."}'; }`
	if err := s.node.Open(context.Background(), hookedRun("r1", []spec.Hook{{Name: "evidence", Point: spec.HookStop, Command: check}})); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Reason != spec.Completed || !strings.Contains(r.Text, "ci.log:42") || r.Turns != 1 {
		t.Fatalf("result: %+v", r)
	}
}

// A cancel ends a hook that the loop waits for, and is not held up by it.
func TestACancelEndsAHook(t *testing.T) {
	inside, ended := make(chan struct{}), make(chan struct{})
	hooks := map[string]hook.Func{"scope": func(ctx context.Context, _ hook.Call) (spec.HookAnswer, error) {
		close(inside)
		<-ctx.Done()
		close(ended)
		return spec.HookAnswer{}, ctx.Err()
	}}
	s := playHooked(t, memory.New(memory.Config{}), 1, `{agents: {boss: [{text: never}]}}`, hooks)
	if err := s.node.Open(context.Background(), hookedRun("r1", []spec.Hook{{Name: "scope", Point: spec.HookInput}})); err != nil {
		t.Fatal(err)
	}
	<-inside
	stop := agent.Canceled{Why: "enough"}
	if err := s.node.Command(context.Background(), mailbox.At("r1", mailbox.Super), "c1", stop.Kind(), stop); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Reason != spec.AbortedStreaming {
		t.Fatalf("result: %+v", r)
	}
	<-ended
}

// A hook that is told of a provider's last word is heard out: the agent's log is
// closed behind its answer.
//
//behaviour:shows A18
func TestErrorHookFinishesBeforeTheLogCloses(t *testing.T) {
	post := memory.New(memory.Config{})
	answered := make(chan struct{})
	hooks := map[string]hook.Func{"pager": func(_ context.Context, c hook.Call) (spec.HookAnswer, error) {
		<-answered // the run is over by then
		return spec.HookAnswer{Text: "paged"}, nil
	}}
	s := playHooked(t, post, 1, `{agents: {boss: [{error: {class: authentication}}]}}`, hooks)
	if err := s.node.Open(context.Background(), hookedRun("r1", []spec.Hook{{Name: "pager", Point: spec.HookStopFailure}})); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Reason != spec.ModelError {
		t.Fatalf("result: %+v", r)
	}
	close(answered)
	s.awaitEvent(event.KindHookFired)
	kinds := logKinds(t, post, mailbox.At("r1", "root"))
	if !slices.Contains(kinds, "hooked") {
		t.Errorf("the log holds %v", kinds)
	}
}
