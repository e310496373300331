package actors_test

import (
	"context"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// recordings are the runs of a form: what a log may hold, some of it in each.
var recordings = map[string]func(*testing.T) *memory.Post{
	"delegate": func(t *testing.T) *memory.Post {
		return recordRun(t, openedRun("delegate", delegate), `
agents:
  boss:
    - calls: [{name: delegate, args: {agent: helper, task: one}}, {name: delegate, args: {agent: helper, task: two}}]
    - text: "heard {{result.0}} and {{result.1}}"
  helper: [{text: "did {{task}}"}]
`, nil, delegate)
	},
	"tools": func(t *testing.T) *memory.Post {
		return recordRun(t, openedRun("tools", look, pay), `
agents:
  boss:
    - calls: [{name: look, args: {at: here}}, {name: look, args: "{"}, {name: pay, args: {sum: 5}}, {name: dance}]
    - calls: [{name: pay, args: {sum: 7}}]
    - text: "paid: {{last}}"
`, nil, look, pay)
	},
	"compaction": func(t *testing.T) *memory.Post {
		page := pageTool{"page", 2 << 10}
		o := openedRun("compaction", page)
		o.RootTurns, o.Limits, o.Model.Window, o.Agent.Output = 12, spec.RunLimits{}, 6000, 500
		o.LoopOptions = spec.LoopOptions{Context: spec.DefaultLoopOptions().Context}
		text := "in_order: true\nrepeat: true\nagents:\n  boss:\n" + strings.Repeat("    - {text: I look., calls: [{name: page}]}\n", 9) + "    - text: done\n"
		return recordRun(t, o, text, nil, page)
	},
	"cancel": func(t *testing.T) *memory.Post {
		post, gate := memory.New(memory.Config{}), make(chan struct{})
		s := playRun(t, post, 1, waits, slowEcho(gate), delegate)
		openRun(t, s, openedRun("cancel", slowEcho(gate), delegate))
		s.awaitEvent(event.KindToolStarted)
		f := agent.Canceled{Why: "enough", Now: true}
		sendCommand(t, s, "cancel.super", "c1", f)
		close(gate)
		s.awaitResult()
		return post
	},
	"allowance": func(t *testing.T) *memory.Post { // attempts under an allowance, which is recalled while a tool works
		const text = `
agents:
  boss:
    - calls: [{name: look, args: {at: here}}]
    - calls: [{name: look, args: {at: there}}]
    - calls: [{name: pay, args: {sum: 5}}]
    - calls: [{name: look, args: {at: here}}]
    - text: "paid: {{last}}"
`
		post, gate := memory.New(memory.Config{}), make(chan struct{})
		s := playRun(t, post, 1, text, look, slowEcho(gate))
		openRun(t, s, openedRun("allowance", look, slowEcho(gate)))
		for range 3 {
			s.awaitEvent(event.KindToolStarted)
		}
		sendCommand(t, s, "allowance.super", "b1", supervisor.LimitSet{Limits: spec.RunLimits{Tokens: 1 << 20}, Patch: true})
		s.awaitEvent(event.KindBudgetChanged)
		close(gate)
		s.awaitResult()
		return post
	},
	"crash": func(t *testing.T) *memory.Post {
		post, gate := memory.New(memory.Config{}), make(chan struct{})
		first := playRun(t, post, 1, waits, slowEcho(gate), delegate)
		openRun(t, first, openedRun("crash", slowEcho(gate), delegate))
		first.awaitEvent(event.KindToolStarted)
		first.node.Stop() // what the tool did nobody knows
		close(gate)
		second := playRun(t, post, 2, waits, slowEcho(gate), delegate)
		if err := second.node.Resume(t.Context(), "crash"); err != nil {
			t.Fatal(err)
		}
		q := second.awaitEvent(event.KindQueryAsked).Data.(event.AgentParked)
		sendCommand(t, second, "crash.root", "a1", agent.Answered{Query: q.Query, Decision: "approve"})
		second.awaitResult()
		return post
	},
	"ask_human": func(t *testing.T) *memory.Post {
		post := memory.New(memory.Config{})
		const text = `
agents:
  boss:
    - calls: [{name: ask_human, args: {question: "Which one?", options: [first, second]}}]
    - text: "bought: {{last}}"
`
		o := openedRun("ask_human")
		o.Tools, o.LoopOptions.AskPeople = append(o.Tools, agent.AskSpec()), true
		first := playRun(t, post, 1, text)
		openRun(t, first, o)
		first.awaitEvent(event.KindQueryAsked)
		first.node.Stop()
		second := playRun(t, post, 2, text)
		if err := second.node.Resume(t.Context(), "ask_human"); err != nil {
			t.Fatal(err)
		}
		q := second.awaitEvent(event.KindAgentResumed)
		sendCommand(t, second, mailbox.At(q.Run, "root"), "s1", agent.Steered{Text: "Be quick."})
		sendCommand(t, second, "ask_human.root", "a1", agent.Answered{Query: "1-0.1", Decision: "text", Text: "the second"})
		second.awaitResult()
		return post
	},
	"hooks": func(t *testing.T) *memory.Post {
		hooks := map[string]hook.Func{
			"guard": func(_ context.Context, q hook.Call) (spec.HookAnswer, error) {
				return spec.HookAnswer{Decision: spec.HookDeny, Text: "not that"}, nil
			},
			"once": func(_ context.Context, q hook.Call) (spec.HookAnswer, error) {
				if q.Data.Blocks > 0 {
					return spec.HookAnswer{}, nil
				}
				return spec.HookAnswer{Decision: spec.HookBlock, Text: "Look once more."}, nil
			},
		}
		o := hookedRun("hooks", []spec.Hook{{Name: "guard", Point: spec.HookPreTool, Tools: "pay"}, {Name: "once", Point: spec.HookStop},
			{Name: "note", Point: spec.HookPostTool, Command: "true"}}, look, pay)
		return recordRun(t, o, `
agents:
  boss:
    - calls: [{name: pay, args: {sum: 5}}, {name: look}]
    - text: "that was it"
    - text: "that was it, twice"
`, hooks, look, pay)
	},
	"fork": func(t *testing.T) *memory.Post {
		return recordRun(t, openedRun("fork", look, delegate), `
agents:
  boss:
    - calls: [{name: look, args: {at: here}}]
    - calls: [{name: delegate, args: {agent: helper, task: "check it", fork: true}}]
    - text: "heard {{last}}"
  helper:
    - text: "knows nothing"
    - text: "was asked {{task}} and {{user}}, and saw {{last}}"
`, nil, look, delegate)
	},
	"journal": func(t *testing.T) *memory.Post {
		o := openedRun("journal", look)
		o.LoopOptions = spec.DefaultLoopOptions()
		o.Tools = append(o.Tools, agent.JournalTools()...)
		o.Policy = supervisor.Policy{Version: 1, Rules: []supervisor.Rule{{Name: "because", On: "stop", Why: "Say why.",
			When: []supervisor.Condition{{Fact: "answer", Op: "lacks", Text: "because"}}}}}
		return recordRun(t, o, `
agents:
  boss:
    - calls: [{name: update_run_journal, args: {objective: "find it"}}, {name: look}, {name: look}, {name: look}]
    - text: "it is there"
    - text: "it is there, because I looked"
`, nil, look)
	},
	"models": func(t *testing.T) *memory.Post {
		o := openedRun("models", look)
		o.LoopOptions.Fallbacks = []spec.Model{{Name: "script/other"}}
		o.RootTurns = 3
		return recordRun(t, o, `
in_order: true
agents:
  boss:
    - error: {class: authentication, unbilled: true, message: "no such model"}
    - text: ""
    - {text: "I look.", calls: [{name: look}]}
    - {text: "I look again.", calls: [{name: look}]}
    - text: "found this much"
`, nil, look)
	},
	"handed_over": func(t *testing.T) *memory.Post {
		post, gate, gone := memory.New(memory.Config{}), make(chan struct{}), make(chan struct{})
		first := playRun(t, post, 1, waits, slowEcho(gate), delegate)
		openRun(t, first, openedRun("handed_over", slowEcho(gate), delegate))
		first.awaitEvent(event.KindToolStarted)
		first.node.HandOver("all", func(mailbox.Address, uint64) bool { return true }, func() { close(gone) })
		close(gate)
		<-gone
		first.node.Stop()
		second := playRun(t, post, 2, waits, slowEcho(gate), delegate)
		if err := second.node.Resume(t.Context(), "handed_over"); err != nil {
			t.Fatal(err)
		}
		second.awaitResult()
		return post
	},
	"rests": func(t *testing.T) *memory.Post {
		post := memory.New(memory.Config{})
		s := startResting(t, post, 1, scriptModel(t, asks))
		openRun(t, s.testNode, askingRun("rests"))
		s.awaitRest(2)
		s.answerRun("rests")
		s.awaitResult()
		return post
	},
	"background": func(t *testing.T) *memory.Post {
		o := openedRun("background", delegate)
		o.Tools = append(o.Tools, agent.SendSpec())
		return recordRun(t, o, `
agents:
  boss:
    - calls: [{name: delegate, args: {agent: helper, task: "look around", background: true}}]
    - text: "I wait."
    - text: "heard: {{user}}"
    - text: "heard at last: {{user}}"
  helper:
    - calls: [{name: send_message, args: {to: parent, text: "I am on it."}}]
    - text: "all is well"
`, nil, delegate)
	},
	"differing": func(t *testing.T) *memory.Post {
		post, gate := memory.New(memory.Config{}), make(chan struct{})
		o := openedRun("differing", slowEcho(gate), delegate)
		o.Hashes = map[string]string{"tool/pay": "effect:1", "hooks": "2"}
		first := playRun(t, post, 1, waits, slowEcho(gate), delegate)
		openRun(t, first, o)
		first.awaitEvent(event.KindToolStarted)
		first.node.Stop()
		close(gate)
		client, set := scriptModel(t, waits), toolSet(t, slowEcho(gate), delegate)
		second := stageOf(t, actors.Config{Name: "other", Post: post, Lease: 2,
			Model: func(string) (model.Client, string, error) { return client, "m", nil },
			Tools: func(spec.Task) (*tool.Set, error) { return set, nil },
			Differs: func(task spec.Task) map[string]string {
				if task.ID == spec.Root {
					return map[string]string{"prompt": "9", "hooks": "3"}
				}
				return nil
			}})
		if err := second.node.Resume(t.Context(), "differing"); err != nil {
			t.Fatal(err)
		}
		second.awaitEvent(event.KindCheckpointResumeUnsafe) // what was under way: asked about by the start that then claims again
		u := second.awaitEvent(event.KindCheckpointResumeUnsafe).Data.(event.ResumeUnsafe)
		sendCommand(t, second, "differing.root", "a1", agent.Answered{Query: u.Query, Decision: "approve"})
		q := second.awaitEvent(event.KindQueryAsked).Data.(event.AgentParked)
		sendCommand(t, second, "differing.root", "a2", agent.Answered{Query: q.Query, Decision: "approve"})
		second.awaitResult()
		return post
	},
}

const waits = `
agents:
  boss:
    - calls: [{name: pay, args: {sum: 5}}]
    - calls: [{name: delegate, args: {agent: helper, task: "check it"}}]
    - text: "paid: {{last}}"
  helper: [{text: "it is paid"}]
`

var (
	look = echoTool{name: "look", class: model.Read}
	pay  = echoTool{name: "pay", class: model.Effect}
)

// slowEcho is a side effect that waits for its gate.
func slowEcho(gate <-chan struct{}) echoTool {
	return echoTool{name: "pay", class: model.Effect, call: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		select {
		case <-gate:
			return tool.Result{Text: "paid"}, nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}}
}

func toolSet(t *testing.T, list ...tool.Tool) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(list...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func openRun(t *testing.T, s *testNode, o supervisor.Opened) {
	t.Helper()
	if err := s.node.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func sendCommand(t *testing.T, s *testNode, to mailbox.Address, id string, f agent.Fact) {
	t.Helper()
	if err := s.node.Command(t.Context(), to, id, f.Kind(), f); err != nil {
		t.Fatal(err)
	}
}

// recordRun plays a run to its end.
func recordRun(t *testing.T, o supervisor.Opened, text string, hooks map[string]hook.Func, list ...tool.Tool) *memory.Post {
	t.Helper()
	post := memory.New(memory.Config{})
	s := playHooked(t, post, 1, text, hooks, list...)
	openRun(t, s, o)
	s.awaitResult()
	return post
}
