package actors_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// soon is an idle timeout for tests: an actor that waits passivates almost at once.
const soon = time.Millisecond

// restStage is a testNode whose actors passivate soon; it counts those that are passivated.
type restStage struct {
	*testNode
	atRest atomic.Int64
	change chan struct{}
}

func startResting(t *testing.T, post mailbox.Post, lease uint64, client model.Client, tools ...tool.Tool) *restStage {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	s := &restStage{change: make(chan struct{}, 1)}
	s.testNode = stageOf(t, actors.Config{Name: "test", Post: post, Lease: lease, IdleTimeout: soon,
		Passivated: func(_ mailbox.Address, change int) {
			s.atRest.Add(int64(change))
			select {
			case s.change <- struct{}{}:
			default:
			}
		},
		Model: func(string) (model.Client, string, error) { return client, "m", nil },
		Tools: func(spec.Task) (*tool.Set, error) { return set, nil }})
	return s
}

// awaitRest waits until so many are at rest.
func (s *restStage) awaitRest(n int64) {
	s.t.Helper()
	late := time.After(deadline)
	for s.atRest.Load() != n {
		select {
		case <-s.change:
		case <-late:
			s.t.Fatalf("%d are at rest, want %d; events: %s", s.atRest.Load(), n, s.eventKinds())
		}
	}
}

// awaitAsleep waits until the logs of so many actors, and the node, say that they are at
// rest. An actor may also rest while it waits for its first lease: who means a later
// rest awaits first what comes in between.
func (s *restStage) awaitAsleep(post mailbox.Store, n int) {
	s.t.Helper()
	tick, late := time.NewTicker(10*time.Millisecond), time.After(deadline)
	defer tick.Stop()
	for {
		rest := 0
		err := post.Heads(context.Background(), func(h mailbox.Head) error {
			if activation.ReadStanding(h.To, h.Data, h.Entries).Rests {
				rest++
			}
			return nil
		})
		if err != nil {
			s.t.Fatal(err)
		}
		if rest == n && s.atRest.Load() == int64(n) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			s.t.Fatalf("%d logs are at rest and %d actors, want %d; events: %s", rest, s.atRest.Load(), n, s.eventKinds())
		}
	}
}

func scriptModel(t *testing.T, text string) model.Client {
	t.Helper()
	sc, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return sc.Client("")
}

// ask is the tool by which a model asks a person.
var ask = echoTool{name: "ask_human", class: model.Effect}

const asks = `{agents: {boss: [{calls: [{name: ask_human, args: {question: "Which one?"}}]}, {text: "{{last}}"}]}}`

func askingRun(run string, tools ...tool.Tool) supervisor.Opened {
	o := openedRun(run, append(tools, ask)...)
	o.LoopOptions.AskPeople = true
	return o
}

func (s *restStage) answerRun(run string) {
	s.t.Helper()
	a := agent.Answered{Query: "1-0.1", Decision: "text", Text: "this"}
	if err := s.node.Command(context.Background(), mailbox.At(run, "root"), "answer", a.Kind(), a); err != nil {
		s.t.Fatal(err)
	}
}

// takeUp informs a node which actors are passivated, by their logs, and wakes the others.
func (s *restStage) takeUp(post mailbox.Store) (awake int) {
	s.t.Helper()
	err := post.Heads(context.Background(), func(h mailbox.Head) error {
		switch st := activation.ReadStanding(h.To, h.Data, h.Entries); {
		case st.Ended:
		case st.Rests:
			s.node.NotePassivated(h.To, st.Due)
		default:
			awake++
			s.node.Wake(h.To)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return awake
}

// A run that waits for a person holds no shell, and its answer wakes it (E4).
//
//behaviour:shows E4
func TestAnswerWakesAPassivatedAgent(t *testing.T) {
	post := memory.New(memory.Config{})
	s := startResting(t, post, 1, scriptModel(t, asks))
	if err := s.node.Open(t.Context(), askingRun("r1")); err != nil {
		t.Fatal(err)
	}
	s.awaitEvent(event.KindQueryAsked)
	s.awaitRest(2)
	s.answerRun("r1")
	if r := s.awaitResult(); r.Reason != spec.Completed || r.Text != "a person answered: this" || r.Budget.Unknown != 0 {
		t.Fatalf("%+v", r)
	}
	s.awaitRest(0)
	for _, e := range s.events {
		if e.Kind == event.KindAgentResumed || e.Kind == event.KindAgentRestarted {
			t.Errorf("to wake up is no crash: %+v", e)
		}
	}
}

// A run at rest is canceled without a model call: by its supervisor, which is at
// rest too (B6).
//
//behaviour:shows B6
func TestCancelWakesAPassivatedRun(t *testing.T) {
	post := memory.New(memory.Config{})
	s := startResting(t, post, 1, scriptModel(t, asks))
	if err := s.node.Open(t.Context(), askingRun("r1")); err != nil {
		t.Fatal(err)
	}
	s.awaitEvent(event.KindQueryAsked)
	s.awaitRest(2)
	f := agent.Canceled{Why: "enough"}
	if err := s.node.Command(t.Context(), mailbox.At("r1", mailbox.Super), "cancel", f.Kind(), f); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Reason != spec.ByCancel {
		t.Fatalf("%+v", r)
	}
	if n := countEvents(s.events, event.KindModelStarted); n != 1 {
		t.Errorf("%d model calls", n)
	}
}

func countEvents(events []event.Published, kind string) (n int) {
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// A parent at rest, with the supervisor, while its child asks a person: both are
// woken by what the child says in the end.
func TestAParentRestsWhileItsChildWaits(t *testing.T) {
	post := memory.New(memory.Config{})
	s := startResting(t, post, 1, scriptModel(t, `
agents:
  boss:
    - calls: [{name: delegate, args: {agent: helper, task: one}}]
    - text: "heard {{last}}"
  helper:
    - calls: [{name: ask_human, args: {question: "Which one?"}}]
    - text: "{{last}}"
`), delegate)
	if err := s.node.Open(t.Context(), askingRun("r1", delegate)); err != nil {
		t.Fatal(err)
	}
	s.awaitEvent(event.KindQueryAsked)
	s.awaitRest(3)
	a := agent.Answered{Query: "1-0.1", Decision: "text", Text: "this"}
	if err := s.node.Command(t.Context(), mailbox.At("r1", "root-1-0"), "answer", a.Kind(), a); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Text != "heard a person answered: this" {
		t.Fatalf("%+v", r)
	}
}

// flakyModel fails once, and says when it may be asked again, and on a channel that it was
// asked.
func flakyModel(after time.Duration) (model.Client, chan struct{}) {
	asked, once := make(chan struct{}, 16), atomic.Bool{}
	return clientFunc(func(context.Context, model.Request, func(model.Delta)) (model.Reply, error) {
		asked <- struct{}{}
		if once.CompareAndSwap(false, true) {
			return model.Reply{}, &model.Error{Class: model.RateLimit, Unbilled: true, RetryAfter: after, Message: "slow down"}
		}
		return sayReply("done"), nil
	}), asked
}

// while is long enough to see that somebody rests who waits for the clock.
const while = 6 * time.Second

// Who waits for the clock is woken by it, by the node that saw it go to rest or
// by the next one, which knows no more of it than the newest entry of its log.
func TestTimerWakesAPassivatedAgent(t *testing.T) {
	t.Parallel()
	for _, moved := range []bool{false, true} {
		t.Run(fmt.Sprintf("another node=%t", moved), inBubble(func(t *testing.T) {
			post := memory.New(memory.Config{})
			client, asked := flakyModel(while)
			s := startResting(t, post, 1, client)
			if err := s.node.Open(t.Context(), openedRun("r1")); err != nil {
				t.Fatal(err)
			}
			<-asked
			s.awaitAsleep(post, 2)
			if len(asked) > 0 {
				t.Fatal("it was asked again before its time")
			}
			if moved {
				s.node.Stop()
				s = startResting(t, post, 2, client)
				if n := s.takeUp(post); n != 0 {
					t.Errorf("%d logs were woken", n)
				}
			}
			if r := s.awaitResult(); r.Reason != spec.Completed || r.Text != "done" {
				t.Fatalf("%+v", r)
			}
		}))
	}
}

// The next owner of logs at rest reads none of them, and writes into none,
// until something comes.
//
//behaviour:shows F2
func TestNextOwnerLeavesPassivatedActorsAlone(t *testing.T) {
	const runs = 20
	post := memory.New(memory.Config{})
	first := startResting(t, post, 1, scriptModel(t, asks))
	for i := range runs {
		if err := first.node.Open(t.Context(), askingRun(fmt.Sprint("r", i))); err != nil {
			t.Fatal(err)
		}
	}
	for range runs {
		first.awaitEvent(event.KindQueryAsked)
	}
	first.awaitAsleep(post, 2*runs)
	first.node.Stop()
	before, _, _ := post.Room(t.Context())
	second := startResting(t, post, 2, scriptModel(t, asks))
	if n := second.takeUp(post); n != 0 {
		t.Errorf("%d logs were woken", n)
	}
	second.awaitRest(2 * runs)
	if after, _, _ := post.Room(t.Context()); after != before {
		t.Errorf("the logs had %d bytes, now %d", before, after)
	}
	second.answerRun("r7")
	if r := second.awaitResult(); r.Run != "r7" || r.Reason != spec.Completed {
		t.Fatalf("%+v", r)
	}
	second.awaitRest(2*runs - 2)
	gone := make(chan struct{})
	second.node.HandOver("all", func(mailbox.Address, uint64) bool { return true }, func() { close(gone) })
	<-gone
	second.awaitRest(0)
}

// Waking up again and again brings no actor nearer to being given up (P18).
func TestWakeupsAreNotFailedStarts(t *testing.T) {
	post := memory.New(memory.Config{})
	s := startResting(t, post, 1, scriptModel(t, asks))
	if err := s.node.Open(t.Context(), askingRun("r1")); err != nil {
		t.Fatal(err)
	}
	released := func() (n int) {
		for _, kind := range logKinds(t, post, "r1.root") {
			if kind == "released" {
				n++
			}
		}
		return n
	}
	rested := 0 // times until now; on a slow machine also while it waits for its first lease
	for i := range 3 * activation.StartsMax {
		for late := time.After(deadline); s.atRest.Load() != 2 || released() <= rested; {
			select {
			case <-s.change:
			case <-late:
				t.Fatalf("it does not rest again: %v", logKinds(t, post, "r1.root"))
			}
		}
		rested = released()
		f := agent.Steered{Text: fmt.Sprint("mind ", i)}
		if err := s.node.Command(t.Context(), mailbox.At("r1", "root"), fmt.Sprint("steer", i), f.Kind(), f); err != nil {
			t.Fatal(err)
		}
	}
	s.answerRun("r1")
	if r := s.awaitResult(); r.Reason != spec.Completed || r.Budget.Unknown != 0 {
		t.Fatalf("%+v", r)
	}
	if kinds := logKinds(t, post, "r1.root"); slices.Contains(kinds, "given_up") {
		t.Errorf("%v", kinds)
	}
}

// What was read of the logs may be old by the time when the node hears of it: an
// actor that has gone to rest again since then is woken when it says.
func TestStalePassivationReportKeepsNewerDueTime(t *testing.T) {
	inBubble(oldNewsOfARestDoesNotHideWhenItIsDue)(t)
}

func oldNewsOfARestDoesNotHideWhenItIsDue(t *testing.T) {
	post := memory.New(memory.Config{})
	client, asked := flakyModel(while)
	s := startResting(t, post, 1, client)
	if err := s.node.Open(t.Context(), openedRun("r1")); err != nil {
		t.Fatal(err)
	}
	<-asked
	s.awaitAsleep(post, 2)
	s.node.NotePassivated("r1.root", 0)
	if r := s.awaitResult(); r.Reason != spec.Completed || r.Text != "done" {
		t.Fatalf("%+v", r)
	}
}

// The one timer of all who are at rest is set back to who comes later and is due
// earlier.
func TestTimerIsMovedForAnEarlierWakeup(t *testing.T) { inBubble(timerIsMovedForAnEarlierWakeup)(t) }

func timerIsMovedForAnEarlierWakeup(t *testing.T) {
	client, _ := flakyModel(1500 * time.Millisecond)
	s := startResting(t, memory.New(memory.Config{}), 1, client)
	s.node.NotePassivated("another.root", time.Now().Add(time.Hour).UnixMilli())
	s.awaitRest(1)
	if err := s.node.Open(t.Context(), openedRun("r1")); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Reason != spec.Completed || r.Text != "done" {
		t.Fatalf("%+v", r)
	}
}
