package runview

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
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

// openIndex opens an empty index.
func openIndex(t *testing.T) *runindex.Index {
	t.Helper()
	nc := bustest.Connect(t, bustest.StartServer(t), bus.RoleNode)
	buckets, err := bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return runindex.Open(buckets)
}

// A run has no node, so no process publishes a Summary: the first request replays the log and
// repairs the row, the next one reads one entry. After an entry that may change the Summary, or
// after the log has lost its end, the log is replayed again.
func TestARequestRepairsARowThatNoNodeWrites(t *testing.T) {
	read, post := 0, memory.New(memory.Config{})
	super, root := mailbox.At("r", mailbox.Super), mailbox.At("r", "root")
	index := openIndex(t)
	views := New(Config{Store: entriesStore{post, &read}, Index: index, States: runlog.NewSupervisorStates(), Logger: slog.New(slog.DiscardHandler)})
	if _, err := index.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
		t.Fatal(err)
	}
	put := func(from mailbox.Address, f agent.Fact) {
		t.Helper()
		testlog.PutFact(t, post, super, from, f, false)
	}
	expect := func(what string, state client.RunState, most int) View {
		t.Helper()
		row, _, err := index.Get(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		read = 0
		l, err := views.ViewOne(t.Context(), row)
		if err != nil || l.State() != state || read > most {
			t.Fatalf("%s: %s (%v), %d entries read, want %s and %d at most", what, l.State(), err, read, state, most)
		}
		return l
	}
	put("", supervisor.Opened{Run: "r", Goal: "work", Root: "a", Definitions: []supervisor.Definition{{Name: "a"}}})
	expect("without a summary", client.RunLive, 1)
	put(root, agent.Park{Query: "q", Question: "Which?", Reason: spec.NeedsHuman})
	l := expect("after a question", client.RunParked, 100)
	if len(l.Questions()) != 1 || l.Questions()[0].Query != "q" {
		t.Errorf("%+v", l.Questions())
	}
	expect("again", client.RunParked, 1)
	put("", supervisor.LimitSet{Patch: true})
	expect("after an entry that changes nothing", client.RunParked, 2)
	q := l.Questions()[0]
	mark := runindex.AnsweredQuestion{Agent: q.Agent, Query: q.Query, Asked: q.Asked, Request: "a1", AtMS: time.Now().UnixMilli()}
	if err := index.ClaimAnswer(t.Context(), "r", mark, l.Seen()); err != nil {
		t.Fatal(err)
	}
	if l := expect("after the answer", client.RunLive, 2); len(l.Questions()) != 0 {
		t.Errorf("%+v", l.Questions())
	}
	if err := post.Purge(t.Context(), super, 0); err != nil {
		t.Fatal(err)
	}
	if l := expect("without a log", client.RunLive, 0); l.Summary.Phase != "" {
		t.Errorf("%+v", l.Summary)
	}
}
