package control

import (
	"context"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/test/testlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/supervisor"
)

// entriesStore counts the entries that are read.
type entriesStore struct {
	mailbox.Store
	entries *int
}

func (c entriesStore) Read(ctx context.Context, at mailbox.Address, after, through uint64, each func(mailbox.Message) error) error {
	return c.Store.Read(ctx, at, after, through, func(m mailbox.Message) error {
		*c.entries++
		return each(m)
	})
}

// A run has no node, so no process publishes a Summary: the first request replays the log and
// repairs the row, the next one reads one entry. After an entry that may change the Summary, or
// after the log has lost its end, the log is replayed again.
func TestARequestRepairsARowThatNoNodeWrites(t *testing.T) {
	read, post := 0, memory.New(memory.Config{})
	super, root := mailbox.At("r", mailbox.Super), mailbox.At("r", "root")
	c := newParts(&Config{Post: entriesStore{post, &read}, Runs: runindex.Open(bucketsOf(t, startEmbedded(t)))})
	if _, err := c.cfg.Runs.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
		t.Fatal(err)
	}
	put := func(from mailbox.Address, f agent.Fact) {
		t.Helper()
		testlog.PutFact(t, post, super, from, f, false)
	}
	expect := func(what string, state client.RunState, most int) runView {
		t.Helper()
		row, _, err := c.cfg.Runs.Get(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		read = 0
		l, err := c.views.viewRun(t.Context(), row)
		if err != nil || l.state() != state || read > most {
			t.Fatalf("%s: %s (%v), %d entries read, want %s and %d at most", what, l.state(), err, read, state, most)
		}
		return l
	}
	put("", supervisor.Opened{Run: "r", Goal: "work", Root: "a", Definitions: []supervisor.Definition{{Name: "a"}}})
	expect("without a summary", client.RunLive, 1)
	put(root, agent.Park{Query: "q", Question: "Which?", Reason: spec.NeedsHuman})
	l := expect("after a question", client.RunParked, 100)
	if len(l.questions()) != 1 || l.questions()[0].Query != "q" {
		t.Errorf("%+v", l.questions())
	}
	expect("again", client.RunParked, 1)
	put("", supervisor.LimitSet{Patch: true})
	expect("after an entry that changes nothing", client.RunParked, 2)
	q := l.questions()[0]
	mark := runindex.AnsweredQuestion{Agent: q.Agent, Query: q.Query, Asked: q.Asked, Request: "a1", AtMS: time.Now().UnixMilli()}
	if err := c.cfg.Runs.ClaimAnswer(t.Context(), "r", mark, l.seen()); err != nil {
		t.Fatal(err)
	}
	if l := expect("after the answer", client.RunLive, 2); len(l.questions()) != 0 {
		t.Errorf("%+v", l.questions())
	}
	if err := post.Purge(t.Context(), super, 0); err != nil {
		t.Fatal(err)
	}
	if l := expect("without a log", client.RunLive, 0); l.summary.Phase != "" {
		t.Errorf("%+v", l.summary)
	}
}
