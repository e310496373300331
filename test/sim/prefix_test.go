package sim

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

var (
	flagRuns    = flag.Int("sim.runs", 16, "how many runs TestEveryPrefix records")
	flagRunFrom = flag.Int64("sim.runfrom", 900_001, "the first seed that TestEveryPrefix records")
)

// branches are what happens at each entry of a log, instead of what did.
var branches = []struct {
	name  string
	facts []agent.Fact
}{
	{"crash", []agent.Fact{agent.Resumed{Activation: "next", Node: "n2"}}},
	{"cancel", []agent.Fact{agent.Canceled{Why: "enough"}}},
	{"cancel now", []agent.Fact{agent.Canceled{Why: "enough", Now: true}}},
	{"cancel, crash", []agent.Fact{agent.Canceled{Why: "enough"}, agent.Resumed{Activation: "next", Node: "n2"}}},
	{"cancel now, crash", []agent.Fact{agent.Canceled{Why: "enough", Now: true}, agent.Resumed{Activation: "next", Node: "n2"}}},
	{"crash, cancel", []agent.Fact{agent.Resumed{Activation: "next", Node: "n2"}, agent.Canceled{Why: "enough"}}},
	{"damage", []agent.Fact{agent.Resumed{Activation: "next", Node: "n2", Damaged: "a bit"}}},
}

// TestEveryPrefix: at every entry of recorded runs, and of whatever else their
// seeds brought about, the agent is canceled, its shell crashes, or both. Each
// of these futures ends, and every request it sends and the history that it
// leaves are accepted by a strict judge of both providers' rules.
//
//	go test ./test/sim -run TestEveryPrefix -sim.runs=500 -v
func TestEveryPrefix(t *testing.T) {
	begin := time.Now()
	j := newJudge(t)
	logs, entries, histories, failures := 0, 0, 0, 0
	for seed := *flagRunFrom; seed < *flagRunFrom+int64(*flagRuns); seed++ {
		r := simulateSeed(seed, seedOptions{Record: true})
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		for _, l := range r.Logs {
			if l.Rotten {
				continue
			}
			logs++
			m := &activation.Agent{Addr: mailbox.At(runName, string(l.Agent))}
			now := &present{hooks: map[string]agent.RunHooks{}, timers: map[string]int64{}}
			for i, f := range l.Facts {
				entries++
				now.take(m.Step(f).Effects)
				for _, b := range branches {
					histories++
					d := &future{present: now.clone(), dice: newDice(seed + int64(i)), judge: j, state: m.State}
					if err := d.play(t, b.facts); err != nil {
						failures++
						t.Errorf("seed %d, %s, fact %d (%s), then %s: %v", seed, l.Agent, i+1, f.Kind, b.name, err)
					}
				}
			}
		}
		if failures > failuresShown {
			break
		}
	}
	t.Logf("%d runs, %d agents' logs, %d entries, %d futures played and their histories judged, %d different bodies judged: %d failures, in %v",
		*flagRuns, logs, entries, histories, j.judged, failures, time.Since(begin).Round(time.Millisecond))
	if entries == 0 || j.judged == 0 {
		t.Error("nothing was judged")
	}
}

const failuresShown = 10

// present is what the world has in hand for an agent, beyond what its state says.
type present struct {
	hooks  map[string]agent.RunHooks
	timers map[string]int64
	killed map[string]bool // tools, and "model"
}

func (p *present) clone() present {
	return present{hooks: maps.Clone(p.hooks), timers: maps.Clone(p.timers), killed: map[string]bool{}}
}

func (p *present) take(effects []any) {
	for _, fx := range effects {
		switch e := fx.(type) {
		case agent.RunHooks:
			p.hooks[e.ID] = e
		case agent.AbortHooks:
			delete(p.hooks, e.ID)
		case agent.Arm:
			p.timers[e.Timer] = e.Due
		case agent.AbortModel:
			if p.killed != nil {
				p.killed["model"] = true
			}
		case agent.AbortTool:
			if p.killed != nil {
				p.killed[e.Call] = true
			}
		}
	}
}

// future is an agent that goes on from one place of its log to its end.
type future struct {
	present
	dice
	judge *judge
	state agent.State
	bad   error
}

// futureMax is how many facts a future may take: it is minimal.
const futureMax = 2000

func (d *future) play(t *testing.T, facts []agent.Fact) (err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	for _, f := range facts {
		d.step(t, f, 0)
	}
	if len(d.state.History) == 0 {
		return nil // it never began
	}
	for i := 0; d.state.Phase != agent.Done; i++ {
		if i > futureMax {
			return fmt.Errorf("it does not end: %s, %d calls, query %q", d.state.Phase, len(d.state.Calls), d.state.Suspended.Question.Query)
		}
		if err := d.answer(t); err != nil {
			return err
		}
	}
	if d.bad != nil {
		return d.bad
	}
	return d.judge.history(t, d.state)
}

func (d *future) step(t *testing.T, f agent.Fact, at int64) {
	t.Helper()
	next := d.state.Activation
	if r, ok := f.(agent.Resumed); ok {
		next = r.Activation
		clear(d.hooks) // its process is gone, with what it had in hand
		clear(d.timers)
	}
	var stepped agent.Output
	d.state, stepped = agent.Step(d.state, agent.Input{At: max(at, d.state.Now+1), Activation: next, Fact: f})
	for _, fx := range stepped.Effects {
		d.take([]any{fx})
		if call, ok := fx.(agent.CallModel); ok && d.bad == nil {
			delete(d.killed, "model")
			d.bad = d.judge.request(t, call.Request)
		}
	}
}

// answer answers what the agent waits for.
func (d *future) answer(t *testing.T) error {
	t.Helper()
	s := &d.state
	for _, id := range slices.Sorted(maps.Keys(d.hooks)) {
		h := d.hooks[id]
		delete(d.hooks, id)
		answers := make([]spec.HookAnswer, len(h.Hooks))
		for i := range h.Hooks {
			answers[i].Hook = h.Hooks[i].Name
		}
		d.step(t, agent.Hooked{ID: id, Point: h.Point, Answers: answers}, 0)
		return nil //nolint:staticcheck // one at a time, the first in order
	}
	switch {
	case isIdle(s):
		d.step(t, agent.Messaged{From: s.BackgroundChildren[0].Child, Call: s.BackgroundChildren[0].Call, Text: "seen"}, 0)
		return nil
	case asksPerson(s):
		d.step(t, agent.Answered{Query: s.Suspended.Question.Query, Decision: oneOf(d.dice, spec.Approve, spec.Skip, spec.TextOnly, spec.Deny), Text: "yes"}, 0)
		return nil
	case s.Phase == agent.Reserving:
		d.step(t, agent.Granted{Reservation: s.Reservation, Output: output, Calls: 2}, 0)
		return nil
	case s.Phase == agent.Thinking:
		d.step(t, d.reply(), 0)
		return nil
	case s.Phase == agent.Stopping:
		d.step(t, agent.StopAllowed{Proposal: s.Proposal}, 0)
		return nil
	}
	for _, c := range s.Calls {
		switch c.Stage {
		case agent.Starting:
			d.step(t, agent.Started{Call: c.ID, Attempt: c.Attempt, Activation: s.Activation}, 0)
			return nil
		case agent.Running:
			f := agent.Returned{Call: c.ID, Attempt: c.Attempt, Text: "seen", Killed: d.killed[c.ID], Error: d.killed[c.ID]}
			d.step(t, f, 0)
			return nil
		}
	}
	if isPaused(s) && d.percent(60) {
		d.step(t, agent.Admitted{Pause: s.ThrottleWait.N}, 0)
		return nil
	}
	timer := d.first()
	if timer == "" {
		return fmt.Errorf("it waits in %s, and for nothing: %d calls", s.Phase, len(s.Calls))
	}
	due := d.timers[timer]
	delete(d.timers, timer)
	d.step(t, agent.Woke{Timer: timer}, due)
	return nil
}

// first is the timer that is due first; those of the time limits are last.
func (d *future) first() string {
	late := func(timer string) int { return btoi(timer == "soft" || timer == "hard") }
	return slices.MinFunc(append(slices.Sorted(maps.Keys(d.timers)), ""), func(a, b string) int {
		return cmp.Or(cmp.Compare(btoi(a == ""), btoi(b == "")), cmp.Compare(late(a), late(b)), cmp.Compare(d.timers[a], d.timers[b]))
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// reply is what the model says: mostly that it is done, and after an abort
// what had arrived.
func (d *future) reply() agent.Fact {
	s := &d.state
	m := model.Message{Role: model.Assistant, Text: "done"}
	if s.Cancel != nil && d.percent(60) {
		m.Calls = []model.ToolCall{{Name: "look", Args: "{}"}, {Name: "pay", Args: `{"x":`, Cut: true}}
	}
	if d.killed["model"] || s.Cancel != nil && d.percent(20) {
		if d.percent(30) {
			m = model.Message{Role: model.Assistant}
		}
		return agent.Failed{Reservation: s.Reservation, Class: model.Aborted, Detail: "aborted", Reply: model.Reply{Message: m}}
	}
	return agent.Replied{Reservation: s.Reservation, Reply: model.Reply{Message: m, Stop: model.StopEnd}}
}
