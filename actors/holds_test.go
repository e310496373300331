package actors_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
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

// leaseMap are what a node believes to hold: by run, 0 is over.
type leaseMap map[string]*atomic.Uint64

func (l leaseMap) holds(at mailbox.Address) (uint64, bool) {
	n := l[at.Run()].Load()
	return n, n > 0
}

// holdRuns makes leases of some runs, all under 1.
func holdRuns(runs ...string) leaseMap {
	l := leaseMap{}
	for _, run := range runs {
		l[run] = &atomic.Uint64{}
		l[run].Store(1)
	}
	return l
}

// startOwner starts a node that holds what the leases say.
func startOwner(t *testing.T, post mailbox.Post, l leaseMap, text string, tools ...tool.Tool) *testNode {
	t.Helper()
	sc, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return stageOf(t, actors.Config{Name: "owner", Post: post, Holds: l.holds,
		Model: func(string) (model.Client, string, error) { return sc.Client(""), "m", nil },
		Tools: func(spec.Task) (*tool.Set, error) { return set, nil }})
}

func (s *testNode) openRun(run string, tools ...tool.Tool) {
	s.t.Helper()
	if err := s.node.Open(s.t.Context(), openedRun(run, tools...)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *testNode) resumeRun(run string) {
	s.t.Helper()
	if err := s.node.Resume(s.t.Context(), run); err != nil {
		s.t.Fatal(err)
	}
}

// countAsked is how many questions were put to a person.
func (s *testNode) countAsked() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.Kind == event.KindQueryAsked {
			n++
		}
	}
	return n
}

// waitingTool is a tool that waits inside until it is let go.
func waitingTool(class model.Class) (work tool.Tool, inside, free chan struct{}, times *atomic.Int32) {
	inside, free, times = make(chan struct{}, 64), make(chan struct{}), &atomic.Int32{}
	return echoTool{name: "work", class: class, call: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		times.Add(1)
		inside <- struct{}{}
		select {
		case <-free:
		case <-ctx.Done():
		}
		return tool.Result{Text: "worked"}, nil
	}}, inside, free, times
}

const workTwice = `{agents: {boss: [{calls: [{name: work}]}, {calls: [{name: work}]}, {text: "{{last}}"}]}}`

// TestNewShellStartsAfterForeignClaimWhileLeaseHolds: somebody else claimed it in between, as
// two nodes do that believe in the same lease after a sleep. The shell falls
// silent, and because this node still holds the log, another one starts.
func TestNewShellStartsAfterForeignClaimWhileLeaseHolds(t *testing.T) {
	inside := make(chan struct{}, 8)
	var times atomic.Int32
	client := clientFunc(func(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Reply, error) {
		inside <- struct{}{}
		if times.Add(1) == 1 {
			<-ctx.Done() // nobody would read its answer
		}
		return sayReply("done"), nil
	})
	post := memory.New(memory.Config{})
	s := playClient(t, post, 1, client)
	s.openRun("r1")
	<-inside
	claim, err := activation.NewLogReader("r1.root", "stranger", mailbox.Epoch{Lease: 7}, &activation.Agent{Addr: "r1.root"}).Claim("elsewhere", "")
	if err != nil {
		t.Fatal(err)
	}
	data, err := mailbox.Encode(claim)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mailbox.Put(t.Context(), post, "r1.root", data); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Reason != spec.Completed || r.Text != "done" {
		t.Fatalf("result: %+v", r)
	}
}

// TestExpiredLeaseThatIsRegainedCostsNothing: nobody else could take the log
// meanwhile, as when the server was away. What was begun counts, what was not
// begun waits, nothing is charged twice and nobody is asked (PROTOCOL P3).
func TestExpiredLeaseThatIsRegainedCostsNothing(t *testing.T) {
	inBubble(expiredLeaseThatIsRegainedCostsNothing)(t)
}

func expiredLeaseThatIsRegainedCostsNothing(t *testing.T) {
	work, inside, free, times := waitingTool(model.Effect)
	l := holdRuns("r1")
	s := startOwner(t, memory.New(memory.Config{}), l, workTwice, work)
	s.openRun("r1", work)
	<-inside
	l["r1"].Store(0)
	free <- struct{}{}
	s.awaitEvent(event.KindToolFinished)
	l["r1"].Store(2)
	s.resumeRun("r1")
	<-inside
	close(free)
	r := s.awaitResult()
	if r.Reason != spec.Completed || r.Budget.Unknown != 0 || times.Load() != 2 || s.countAsked() != 0 {
		t.Fatalf("%d calls, %d questions, result: %+v", times.Load(), s.countAsked(), r)
	}
}

// TestNoCallStartsAfterAnotherNodesClaim: a node whose lease was over holds
// the log again, and another one had it in between. What the first had postponed
// is not done after it.
func TestNoCallStartsAfterAnotherNodesClaim(t *testing.T) {
	work, inside, free, times := waitingTool(model.Effect)
	first, second := holdRuns("r1"), holdRuns("r1")
	second["r1"].Store(0)
	post := memory.New(memory.Config{})
	a := startOwner(t, post, first, workTwice, work)
	b := startOwner(t, post, second, workTwice, work)
	a.openRun("r1", work)
	<-inside
	first["r1"].Store(0)
	free <- struct{}{}
	a.awaitEvent(event.KindToolFinished) // the next model call is postponed
	second["r1"].Store(2)
	b.resumeRun("r1")
	<-inside
	first["r1"].Store(1)
	close(free)
	if r := b.awaitResult(); r.Reason != spec.Completed || times.Load() != 2 {
		t.Fatalf("%d calls, result: %+v", times.Load(), r)
	}
}

// TestHandOverBlocksShellsOnlyUnderItsLease: once a log has been handed over no shell of it
// starts, whatever else is handed over at the same time. Under another lease one
// does, also where that was taken before the hand-over had come to its end.
func TestHandOverBlocksShellsOnlyUnderItsLease(t *testing.T) {
	work, inside, free, _ := waitingTool(model.Read)
	l := holdRuns("r1", "r2", "r3")
	post := memory.New(memory.Config{})
	s := startOwner(t, post, l, workTwice, work)
	gone := make(chan string, 8)
	for run := range l {
		s.openRun(run, work)
		<-inside
	}
	handOver := func(run string, lease uint64) {
		match := func(at mailbox.Address, under uint64) bool { return at.Run() == run && under == lease }
		s.node.HandOver(run, match, func() { gone <- run })
	}
	handOver("none", 1) // the one after it is told once this one is
	for run := range l {
		handOver(run, 1)
	}
	handOver("also none", 1)
	for range 2 {
		<-gone
	}
	l["r3"].Store(2) // lost and taken again
	s.resumeRun("r3")
	close(free)
	for range l {
		<-gone
	}
	l["r2"].Store(2)
	s.resumeRun("r2")
	s.resumeRun("r1")
	for range 2 {
		if r := s.awaitResult(); r.Run == "r1" || r.Reason != spec.Completed {
			t.Fatalf("result: %+v", r)
		}
	}
	kinds := logKinds(t, post, "r1.root")
	if kinds[len(kinds)-1] != "released" {
		t.Errorf("the log that was handed over goes on: %v", kinds)
	}
}

// TestAShellThatIsBehindIsHandedOver: it is detached from the tail, and what it
// waits for comes by its own read.
func TestAShellThatIsBehindIsHandedOver(t *testing.T) {
	const flood = 400
	inside, free := make(chan struct{}, 2), make(chan struct{})
	client := clientFunc(func(context.Context, model.Request, func(model.Delta)) (model.Reply, error) {
		inside <- struct{}{}
		<-free
		return sayReply("done"), nil
	})
	var slow atomic.Bool
	s := playClient(t, memory.New(memory.Config{}), 1, client)
	s.onWhole = func(at, kind string) {
		if at == "r1.super" && kind == event.KindPolicyApplied && slow.CompareAndSwap(false, true) {
			<-free // the shell is behind its log
		}
	}
	s.openRun("r1")
	<-inside
	for i := range flood {
		f := supervisor.PolicySet{}
		if err := s.node.Command(t.Context(), "r1.super", fmt.Sprintf("p%d", i), f.Kind(), f); err != nil {
			t.Fatal(err)
		}
	}
	s.openRun("r2") // once it has begun the flood has come
	<-inside
	gone := make(chan struct{})
	s.node.HandOver("all", func(mailbox.Address, uint64) bool { return true }, func() { close(gone) })
	close(free)
	select {
	case <-gone:
	case <-time.After(deadline):
		t.Fatal("a shell that was behind is never let go")
	}
}
