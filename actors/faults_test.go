package actors_test

import (
	"context"
	"errors"
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
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// faultyPost is a Post that fails where a test says so.
type faultyPost struct {
	mailbox.Post
	append func(to mailbox.Address, kind string) error
	read   func(at mailbox.Address) error
}

func (f faultyPost) Append(ctx context.Context, to mailbox.Address, data []byte, done func(uint64, error)) {
	if e, err := mailbox.Decode(data); err == nil && f.append != nil {
		if err := f.append(to, e.Items[0].Kind); err != nil {
			done(0, err)
			return
		}
	}
	f.Post.Append(ctx, to, data, done)
}

func (f faultyPost) Read(ctx context.Context, at mailbox.Address, after, through uint64, each func(mailbox.Message) error) error {
	if f.read != nil {
		if err := f.read(at); err != nil {
			return err
		}
	}
	return f.Post.Read(ctx, at, after, through, each)
}

// logKinds lists the first items of a log.
func logKinds(t *testing.T, post mailbox.Post, at mailbox.Address) []string {
	t.Helper()
	var kinds []string
	err := post.Read(context.Background(), at, 0, 0, func(m mailbox.Message) error {
		e, err := mailbox.Decode(m.Data)
		if err == nil {
			kinds = append(kinds, e.Items[0].Kind)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// stopHalfway plays a run until its tool is under way, and stops the node there.
func stopHalfway(t *testing.T, post mailbox.Post, text string) tool.Tool {
	t.Helper()
	inside := make(chan struct{}, 8)
	var times atomic.Int32
	look := echoTool{name: "look", class: model.Read, call: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		if times.Add(1) == 1 {
			inside <- struct{}{}
			<-ctx.Done()
		}
		return tool.Result{Text: "seen"}, nil
	}}
	first := playRun(t, post, 1, text, look)
	if err := first.node.Open(context.Background(), openedRun("r1", look)); err != nil {
		t.Fatal(err)
	}
	<-inside
	first.node.Stop()
	return look
}

const lookOnce = `{agents: {boss: [{calls: [{name: look}]}, {text: "{{last}}"}]}}`

// A log that is not what its own entries say it was ends the run as log_damaged,
// whether its head is missing or an entry was changed (PROTOCOL P13).
func TestADamagedLogEndsTheRun(t *testing.T) {
	headless := func(log [][]byte) [][]byte { return log[1:] }
	swapped := func(log [][]byte) [][]byte { log[0], log[1] = log[1], log[0]; return log }
	for at, damages := range map[mailbox.Address]map[string]func([][]byte) [][]byte{
		"r1.root":  {"headless": headless, "swapped": swapped},
		"r1.super": {"headless": headless},
	} {
		for name, damage := range damages {
			t.Run(string(at)+"/"+name, func(t *testing.T) {
				whole := memory.New(memory.Config{})
				look := stopHalfway(t, whole, lookOnce)
				spoiled := memory.New(memory.Config{})
				for _, log := range []mailbox.Address{"r1.super", "r1.root"} {
					var entries [][]byte
					if err := whole.Read(t.Context(), log, 0, 0, func(m mailbox.Message) error {
						entries = append(entries, m.Data)
						return nil
					}); err != nil {
						t.Fatal(err)
					}
					if log == at {
						entries = damage(entries)
					}
					for _, data := range entries {
						if _, err := mailbox.Put(t.Context(), spoiled, log, data); err != nil {
							t.Fatal(err)
						}
					}
				}
				second := playRun(t, spoiled, 2, lookOnce, look)
				if err := second.node.Resume(t.Context(), "r1"); err != nil {
					t.Fatal(err)
				}
				if r := second.awaitResult(); r.Reason != spec.LogDamaged || !r.Partial {
					t.Fatalf("result: %+v", r)
				}
			})
		}
	}
}

// A store that is full, or that nobody leads, for a while: the actors wait for it.
func TestAStoreOutOfReachIsWaitedFor(t *testing.T) {
	const failures = 5 // more than a shell may crash
	for name, fault := range map[string]func(faultyPost) faultyPost{
		"claim": func(f faultyPost) faultyPost {
			var n atomic.Int32
			f.append = func(at mailbox.Address, kind string) error {
				if kind == "resumed" && at == "r1.root" && n.Add(1) <= failures {
					return mailbox.ErrFull
				}
				return nil
			}
			return f
		},
		"replay": func(f faultyPost) faultyPost {
			var n atomic.Int32
			f.read = func(at mailbox.Address) error {
				if at == "r1.root" && n.Add(1) <= failures {
					return errors.New("no leader")
				}
				return nil
			}
			return f
		},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := playRun(t, fault(faultyPost{Post: memory.New(memory.Config{})}), 1, `{agents: {boss: [{text: done}]}}`)
			if err := s.node.Open(t.Context(), openedRun("r1")); err != nil {
				t.Fatal(err)
			}
			if r := s.awaitResult(); r.Reason != spec.Completed {
				t.Fatalf("result: %+v", r)
			}
		}))
	}
}

// An actor whose shell crashes again and again is given up: its run goes on
// without it, or ends.
//
//behaviour:shows G7
func TestAnActorThatCrashesTooOftenIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		name, poison string
		reason       spec.Reason
		detail       string
	}{
		{"root", "r1.root", spec.ResumeUnsafe, "crashed"},
		{"child", "r1.root-1-0", spec.Completed, ""},
		{"supervisor", "r1.super", spec.ResumeUnsafe, "crashed"},
	} {
		t.Run(c.name, inBubble(func(t *testing.T) {
			text := `{agents: {boss: [{calls: [{name: delegate, args: {agent: helper, task: one}}]}, {text: "heard {{last}}"}], helper: [{text: did}]}}`
			s := playRun(t, memory.New(memory.Config{}), 1, text, delegate)
			s.onWhole = func(at, kind string) {
				if at == c.poison && (kind == event.KindAgentStarted || kind == event.KindRunStarted) {
					panic("an observer that crashes the shell")
				}
			}
			if err := s.node.Open(t.Context(), openedRun("r1", delegate)); err != nil {
				t.Fatal(err)
			}
			r := s.awaitResult()
			if r.Reason != c.reason || !strings.Contains(r.Detail, c.detail) || r.Run != "r1" {
				t.Fatalf("result: %+v", r)
			}
			if c.name == "child" && !strings.Contains(r.Text, "stopped early: resume_unsafe") {
				t.Fatalf("the parent heard %q", r.Text)
			}
		}))
	}
}

// What one says to another fits an entry, whatever a provider or a person says.
func TestALongReasonDoesNotKeepARunFromEnding(t *testing.T) {
	long := strings.Repeat("x", 240<<10)
	inside := make(chan struct{}, 1)
	client := clientFunc(func(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Reply, error) {
		inside <- struct{}{}
		<-ctx.Done()
		return sayReply(long), &model.Error{Class: model.Aborted, Message: "stopped"}
	})
	post := memory.New(memory.Config{})
	s := playClient(t, post, 1, client)
	if err := s.node.Open(t.Context(), openedRun("r1")); err != nil {
		t.Fatal(err)
	}
	<-inside
	f := agent.Canceled{Why: long, Now: true}
	if err := s.node.Command(t.Context(), "r1.super", "c1", f.Kind(), f); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Reason != spec.AbortedStreaming {
		t.Fatalf("result: %+v", r.Reason)
	}
}

// A bug in a model's client is a failed attempt of that agent, not the end of
// the process.
func TestAClientThatPanicsIsAFailedAttempt(t *testing.T) {
	client := clientFunc(func(context.Context, model.Request, func(model.Delta)) (model.Reply, error) {
		panic("a bug in an adapter")
	})
	s := playClient(t, memory.New(memory.Config{}), 1, client)
	if err := s.node.Open(t.Context(), openedRun("r1")); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Reason != spec.ModelError || !strings.Contains(r.Detail, "a bug in an adapter") {
		t.Fatalf("result: %+v", r)
	}
}

// A usage that no call can have counts as unknown: the whole reservation is spent, and nothing is given back.
func TestAttackImpossibleUsageIsUnknown(t *testing.T) {
	for _, tokens := range []int64{-1_000_000, 1 << 62} {
		client := clientFunc(func(context.Context, model.Request, func(model.Delta)) (model.Reply, error) {
			r := sayReply("done")
			r.Usage, r.UsageKnown = model.Usage{Input: tokens, Output: tokens}, true
			return r, nil
		})
		s := playClient(t, memory.New(memory.Config{}), 1, client)
		if err := s.node.Open(t.Context(), openedRun("r1")); err != nil {
			t.Fatal(err)
		}
		if r := s.awaitResult(); r.Reason != spec.Completed || r.Budget.Used <= 0 || r.Budget.Used > r.Budget.Limit {
			t.Errorf("%d: %s, %+v", tokens, r.Reason, r.Budget)
		}
	}
}

// A flood of entries for a shell that is behind: it is detached and reads for
// itself (PROTOCOL P18), each entry once and in order, and it makes a checkpoint
// for every 64 of them, not one for each.
func TestDetachedShellReadsBacklogInBatches(t *testing.T) {
	const flood = 400
	inside, free := make(chan struct{}, 1), make(chan struct{})
	client := clientFunc(func(context.Context, model.Request, func(model.Delta)) (model.Reply, error) {
		inside <- struct{}{}
		<-free
		return sayReply("done"), nil
	})
	var slow atomic.Bool
	var reads atomic.Int32
	post := faultyPost{Post: memory.New(memory.Config{}), read: func(at mailbox.Address) error {
		if at == "r1.super" {
			reads.Add(1)
		}
		return nil
	}}
	s := playClient(t, post, 1, client)
	s.onWhole = func(at, kind string) {
		if at == "r1.super" && kind == event.KindPolicyApplied && slow.CompareAndSwap(false, true) {
			<-free // the shell is behind its log
		}
	}
	if err := s.node.Open(t.Context(), openedRun("r1")); err != nil {
		t.Fatal(err)
	}
	<-inside
	for i := range flood {
		f := supervisor.PolicySet{}
		if err := s.node.Command(t.Context(), "r1.super", fmt.Sprintf("p%d", i), f.Kind(), f); err != nil {
			t.Fatal(err)
		}
	}
	before := reads.Load()
	close(free)
	s.awaitResult()
	if n := reads.Load() - before; n < flood/256 {
		t.Errorf("the shell read its log %d times, so it was sent all of the flood", n)
	}
	checkpoints := 0
	for _, kind := range logKinds(t, post.Post, "r1.super") {
		if kind == "checkpoint" {
			checkpoints++
		}
	}
	if checkpoints > flood/32 {
		t.Errorf("%d checkpoints in a log of %d entries", checkpoints, flood)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	applied, last := 0, uint64(0)
	for _, e := range s.events {
		if e.Kind == event.KindPolicyApplied {
			if e.Seq <= last {
				t.Errorf("entry %d is read after %d", e.Seq, last)
			}
			applied, last = applied+1, e.Seq
		}
	}
	if applied != flood {
		t.Errorf("%d of %d entries were read", applied, flood)
	}
}

// What was not told before a crash is told in the order of the log.
func TestEventsPublishedAgainKeepTheirOrder(t *testing.T) {
	post := memory.New(memory.Config{})
	look := stopHalfway(t, post, lookOnce)
	second := playRun(t, post, 2, lookOnce, look)
	if err := second.node.Resume(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	second.awaitResult()
	second.mu.Lock()
	defer second.mu.Unlock()
	last := map[string]uint64{}
	for _, e := range second.events {
		if e.Seq > 0 && e.Seq < last[e.Agent] {
			t.Fatalf("%s is told after %d", e.ID, last[e.Agent])
		}
		last[e.Agent] = max(last[e.Agent], e.Seq)
	}
}
