package actors_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

const ofChild = `{agents: {boss: [{calls: [{name: delegate, args: {agent: helper, task: one}}]}, {text: "heard {{last}}"}], helper: [{text: did}]}}`

// ofRun are the entries of a run's logs, as one node left them.
func ofRun(t *testing.T, post *memory.Post) map[mailbox.Address][][]byte {
	t.Helper()
	logs := map[mailbox.Address][][]byte{}
	err := post.ReadRun(t.Context(), "r1", func(m mailbox.Message) error {
		logs[m.To] = append(logs[m.To], m.Data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return logs
}

// endedRun are the logs of a run of two agents that has completed.
func endedRun(t *testing.T) map[mailbox.Address][][]byte {
	t.Helper()
	post := memory.New(memory.Config{})
	s := playRun(t, post, 1, ofChild, delegate)
	if err := s.node.Open(t.Context(), openedRun("r1", delegate)); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Reason != spec.Completed {
		t.Fatalf("result: %+v", r)
	}
	s.node.Stop()
	return ofRun(t, post)
}

// logsWithout is a store with these logs, of which one has lost its tail.
func logsWithout(t *testing.T, logs map[mailbox.Address][][]byte, at mailbox.Address, left int) mailbox.Post {
	t.Helper()
	post := memory.New(memory.Config{})
	for to, entries := range logs {
		if to == at {
			entries = entries[:left]
		}
		for _, data := range entries {
			if _, err := mailbox.Put(t.Context(), post, to, slices.Clone(data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return post
}

// TestRunEndsAfterItsSupervisorsLogLosesAnyTail: a store that did not wait for its disk
// may lose the newest entries of one log and keep those of others. Then a supervisor
// waits for members that have ended: they repeat their end (PROTOCOL P25), or somebody
// says that messages are missing. Whatever is left, the run ends.
//
//behaviour:shows F1
func TestRunEndsAfterItsSupervisorsLogLosesAnyTail(t *testing.T) {
	inBubble(runEndsAfterItsSupervisorsLogLosesAnyTail)(t)
}

func runEndsAfterItsSupervisorsLogLosesAnyTail(t *testing.T) {
	logs := endedRun(t)
	super := mailbox.At("r1", mailbox.Super)
	for left := 1; left < len(logs[super]); left++ {
		second := playRun(t, logsWithout(t, logs, super, left), 2, ofChild, delegate)
		if err := second.node.Resume(t.Context(), "r1"); err != nil {
			t.Fatal(err)
		}
		r := second.awaitResult()
		switch {
		case r.Reason == spec.LogDamaged && r.Detail != "":
		case r.Reason == spec.Completed && strings.HasPrefix(r.Text, "heard did"):
		default:
			t.Errorf("%d of %d entries left: %+v", left, len(logs[super]), r)
		}
		t.Logf("%d of %d entries left: %s %s", left, len(logs[super]), r.Reason, r.Detail)
		second.node.Stop()
	}
}

// TestAClosedLogAnswersANodeThatReadsOn: the question comes to a log that has ended long
// ago, on a node that has let it go.
func TestAClosedLogAnswersANodeThatReadsOn(t *testing.T) {
	logs := endedRun(t)
	super := mailbox.At("r1", mailbox.Super)
	lost := lastFinish(t, logs[super])
	post := logsWithout(t, logs, super, lost)
	second := playRun(t, post, 2, ofChild, delegate)
	for at := range logs { // all that has ended is read first, and let go
		if at != super {
			second.node.Wake(at)
		}
	}
	second.node.Wake(super)
	if r := second.awaitResult(); r.Reason != spec.Completed || r.Text != "heard did" {
		t.Errorf("%+v", r)
	}
}

// TestStatusAskedDuringShellExitIsAnswered: the shell of a closed log says that it
// is through with it, and the question of the supervisor comes before the router hears that.
func TestStatusAskedDuringShellExitIsAnswered(t *testing.T) {
	logs := endedRun(t)
	super, root := mailbox.At("r1", mailbox.Super), mailbox.At("r1", "root")
	crossing := &crossingPost{Post: logsWithout(t, logs, super, lastFinish(t, logs[super])), at: root}
	second := playRun(t, crossing, 2, ofChild, delegate)
	crossing.node = second.node
	second.node.Wake(super)
	if r := second.awaitResult(); r.Reason != spec.Completed || r.Text != "heard did" {
		t.Errorf("%+v", r)
	}
}

// crossingPost brings the first question to a closed log, and then what its shell said
// before it had read that question.
type crossingPost struct {
	mailbox.Post
	at      mailbox.Address
	node    *actors.Node
	crossed bool
}

func (p *crossingPost) Tail(ctx context.Context, f func(mailbox.Message)) (func(), error) {
	return p.Post.Tail(ctx, func(m mailbox.Message) {
		f(m)
		if e, err := mailbox.Decode(m.Data); m.To == p.at && err == nil && e.From == mailbox.At("r1", mailbox.Super) && !p.crossed && p.node != nil {
			p.crossed = true
			p.node.SayEnded(p.at, m.Place-1)
		}
	})
}

// lastFinish is where the supervisor heard of its root's end.
func lastFinish(t *testing.T, log [][]byte) int {
	t.Helper()
	at := -1
	for i, data := range log {
		e, err := mailbox.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(e.Items, func(item mailbox.Item) bool { return item.Kind == (agent.Finish{}).Kind() }) {
			at = i
		}
	}
	if at < 0 {
		t.Fatal("the run has no end")
	}
	return at
}
