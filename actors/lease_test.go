package actors_test

import (
	"context"
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
	"github.com/troupe-run/troupe/tool"
)

// frozenNode is a node that is frozen at one place, for longer than its lease lasts. The
// lease is there again once it has been asked for twice in vain.
type frozenNode struct {
	lease  atomic.Uint64
	inVain atomic.Int32
	again  uint64       // the lease after the freeze
	wrong  atomic.Int32 // calls that began without a lease
	calls  atomic.Int32
}

// freezeLease ends the lease.
func (f *frozenNode) freezeLease() { f.lease.Store(0) }

func (f *frozenNode) holds(at mailbox.Address) (uint64, bool) {
	lease := f.lease.Load()
	if lease == 0 && at.Agent() == "root" && f.inVain.Add(1) == 2 {
		f.lease.Store(f.again)
	}
	return lease, lease > 0
}

// awaitPostponed waits until a call was postponed: only then the lease is asked for again and again.
func (f *frozenNode) awaitPostponed() {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for f.inVain.Load() < 4 {
		<-tick.C
	}
}

// noteBegun notes a call that began.
func (f *frozenNode) noteBegun() {
	f.calls.Add(1)
	if f.lease.CompareAndSwap(0, f.again) { // what comes after it goes on
		f.wrong.Add(1)
	}
}

// frozenStage starts a node that calls at whenever work of the root begins, with the
// number of that work: after the decision to begin it, and before it begins.
func frozenStage(t *testing.T, f *frozenNode, post mailbox.Post, text string, at func(no int32)) (*testNode, tool.Tool) {
	t.Helper()
	sc, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	work := echoTool{name: "work", class: model.Effect, call: func(context.Context, tool.Call) (tool.Result, error) {
		f.noteBegun()
		return tool.Result{Text: "worked"}, nil
	}}
	set, err := tool.NewSet(work)
	if err != nil {
		t.Fatal(err)
	}
	f.lease.Store(1)
	var no atomic.Int32
	return stageOf(t, actors.Config{Name: "owner", Post: post, Holds: f.holds,
		Busy: func(_ mailbox.Address, change int) {
			if change > 0 {
				at(no.Add(1))
			}
		},
		Model: func(string) (model.Client, string, error) {
			at(-no.Load()) // the client is asked for when the call is about to begin
			client := sc.Client("")
			return clientFunc(func(ctx context.Context, r model.Request, emit func(model.Delta)) (model.Reply, error) {
				f.noteBegun()
				return client.Complete(ctx, r, emit)
			}), "m", nil
		},
		Tools: func(spec.Task) (*tool.Set, error) { return set, nil }}), work
}

const workOnce = `{agents: {boss: [{calls: [{name: work}]}, {text: "{{last}}"}]}}`

// TestNoCallStartsAfterAFreezeLongerThanTheLease: the process is frozen between the
// decision to call a tool or a model, and the call. When it thaws, its lease has ended:
// the call does not begin until the node holds the log again and nobody else has
// claimed it (PROTOCOL P27). Nothing is lost by that, and nobody is asked.
//
//behaviour:shows F7
func TestNoCallStartsAfterAFreezeLongerThanTheLease(t *testing.T) {
	for name, place := range map[string]int32{"tool": 2, "model": -1, "model after the tool": -3} {
		for what, again := range map[string]uint64{"the same lease": 1, "another lease": 2} {
			t.Run(name+", "+what, inBubble(func(t *testing.T) {
				f := &frozenNode{again: again}
				s, work := frozenStage(t, f, memory.New(memory.Config{}), workOnce, func(no int32) {
					if no == place && f.inVain.Load() == 0 {
						f.freezeLease()
					}
				})
				s.openRun("r1", work)
				r := s.awaitResult()
				if f.wrong.Load() != 0 {
					t.Errorf("%d calls began without a lease", f.wrong.Load())
				}
				if r.Reason != spec.Completed || f.calls.Load() != 3 || s.countAsked() != 0 {
					t.Errorf("%d calls, %d questions, result: %+v", f.calls.Load(), s.countAsked(), r)
				}
			}))
		}
	}
}

// claimingPost is logs in which somebody else claims an actor just after its first Started.
type claimingPost struct {
	mailbox.Post
	t    *testing.T
	once atomic.Bool
	then func()
}

func (p *claimingPost) Append(ctx context.Context, to mailbox.Address, data []byte, done func(uint64, error)) {
	p.Post.Append(ctx, to, data, done)
	e, err := mailbox.Decode(data)
	if err != nil || len(e.Items) != 1 || e.Items[0].Kind != "started" || !p.once.CompareAndSwap(false, true) {
		return
	}
	claim, err := activation.NewLogReader(to, "stranger", mailbox.Epoch{Lease: 2}, &activation.Agent{Addr: to}).Claim("elsewhere", "")
	if err == nil {
		data, err = mailbox.Encode(claim)
	}
	if err == nil {
		_, err = mailbox.Put(ctx, p.Post, to, data)
	}
	if err != nil {
		p.t.Error(err)
	}
	p.then()
}

// TestReacquiredLeaseIsProvenBeforeACall: the node was frozen with a Started
// that it had not read yet. Meanwhile somebody else claimed the log and died, and the
// lease is ours again, under another epoch. The tool is not called: that the claim has
// not been read yet does not mean that there is none (PROTOCOL P27).
//
//behaviour:shows F7
func TestReacquiredLeaseIsProvenBeforeACall(t *testing.T) {
	f := &frozenNode{}
	var s *testNode
	post := &claimingPost{Post: memory.New(memory.Config{}), t: t, then: func() { f.lease.Store(3) }}
	s, work := frozenStage(t, f, post, workOnce, func(int32) {})
	s.openRun("r1", work)
	s.awaitEvent(event.KindQueryAsked) // whether the stranger called it nobody knows
	if n := f.calls.Load(); n != 1 {
		t.Errorf("%d calls, and the tool is not to be called", n)
	}
}

// TestAPostponedCallThatIsCanceledNeverBegins: the lease ended just before the tool was
// to be called, and the run was canceled before the lease was back.
//
//behaviour:shows B5
func TestAPostponedCallThatIsCanceledNeverBegins(t *testing.T) {
	inBubble(aPostponedCallThatIsCanceledNeverBegins)(t)
}

func aPostponedCallThatIsCanceledNeverBegins(t *testing.T) {
	f, ended := &frozenNode{}, make(chan struct{})
	s, work := frozenStage(t, f, memory.New(memory.Config{}), workOnce, func(no int32) {
		if no == 2 {
			f.freezeLease()
			close(ended)
		}
	})
	s.openRun("r1", work)
	<-ended
	f.awaitPostponed()
	canceled := agent.Canceled{Why: "enough", Now: true}
	if err := s.node.Command(t.Context(), "r1.super", "cancel", canceled.Kind(), canceled); err != nil {
		t.Fatal(err)
	}
	if err := s.node.Command(t.Context(), "r1.root", "cancel", canceled.Kind(), canceled); err != nil { // as its supervisor does, which has no lease either
		t.Fatal(err)
	}
	f.lease.Store(1) // what proves the lease comes after the cancel in the log
	r := s.awaitResult()
	if f.wrong.Load() != 0 || f.calls.Load() != 1 || r.Reason != spec.AbortedTools {
		t.Errorf("%d calls, result: %+v", f.calls.Load(), r)
	}
}
