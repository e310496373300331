package control

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/test/testlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/supervisor"
)

// Many rows lack a change that no node will write: a request waits for all of them together, and not
// for one after the other until it has no time left.
func TestARequestWaitsOnceForAllRowsThatLag(t *testing.T) {
	bustest.Bubble(t, aRequestWaitsOnceForAllRowsThatLag)
}

func aRequestWaitsOnceForAllRowsThatLag(t *testing.T) {
	const runs = 24
	post := memory.New(memory.Config{})
	c := newControl(Config{Post: post, Runs: runindex.Open(bucketsOf(t, startEmbedded(t)))}).parts.viewer
	super := func(i int) mailbox.Address { return mailbox.At(fmt.Sprintf("r%02d", i), mailbox.Super) }
	for i := range runs {
		run := super(i).Run()
		if _, err := c.cfg.Runs.Add(t.Context(), client.RunInfo{RunID: run, State: client.RunLive}); err != nil {
			t.Fatal(err)
		}
		testlog.PutFact(t, post, super(i), "", supervisor.Opened{Run: run, Goal: "work", Root: "a", Definitions: []supervisor.Definition{{Name: "a"}}}, false)
	}
	if got := listIDs(t, c, client.ListRequest{State: client.RunLive}); len(got) != runs { // which writes the Summaries
		t.Fatalf("%d runs are live", len(got))
	}
	lag := func(f agent.Fact) {
		for i := range runs {
			testlog.PutFact(t, post, super(i), mailbox.At(super(i).Run(), "root"), f, false)
		}
	}
	const longestPause = 160 * time.Millisecond // of a request that waits for rows
	const most = runs * longestPause / 2
	measure := func(what string, request func() int) {
		t.Helper()
		began := time.Now()
		if got := request(); got != runs {
			t.Errorf("%s: %d of %d runs", what, got, runs)
		}
		if took := time.Since(began); took > most {
			t.Errorf("%s took %v, want %v at most", what, took, most)
		}
	}
	lag(agent.Park{Query: "q", Question: "Which?", Reason: spec.NeedsHuman})
	measure("questions", func() int {
		list, err := c.listQuestions(t.Context(), struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.([]Question))
	})
	lag(agent.Park{Query: "q"}) // a copy, which changes nothing; only a replay tells
	measure("list", func() int { return len(listIDs(t, c, client.ListRequest{State: client.RunParked})) })
}

// cutStore is a store whose log of one run takes longer to read from its beginning than any request has.
type cutStore struct {
	mailbox.Store
	run *string
}

func (s cutStore) Read(ctx context.Context, at mailbox.Address, after, through uint64, each func(mailbox.Message) error) error {
	if after == 0 && at.Run() == *s.run {
		return context.DeadlineExceeded
	}
	return s.Store.Read(ctx, at, after, through, each) //nolint:wrapcheck // as the store
}

// A run whose log takes too long to replay is in lists as its row has it: it does not keep the questions of all others from
// their people.
func TestOneLongLogHoldsUpNoList(t *testing.T) {
	t.Parallel()
	long, none := "r1", ""
	post := cutStore{memory.New(memory.Config{}), &none}
	c := newControl(Config{Post: post, Runs: runindex.Open(bucketsOf(t, startEmbedded(t)))}).parts.viewer
	for _, run := range []string{"r0", long} {
		if _, err := c.cfg.Runs.Add(t.Context(), client.RunInfo{RunID: run, State: client.RunLive}); err != nil {
			t.Fatal(err)
		}
		super := mailbox.At(run, mailbox.Super)
		testlog.PutFact(t, post, super, "", supervisor.Opened{Run: run, Goal: "work", Root: "a", Definitions: []supervisor.Definition{{Name: "a"}}}, false)
		testlog.PutFact(t, post, super, mailbox.At(run, "root"), agent.Park{Query: "q", Question: strings.Repeat("Which? ", 1000), Reason: spec.NeedsHuman}, false)
	}
	for _, *post.run = range []string{none, long} { // the first request writes the Summaries
		list, err := c.listQuestions(t.Context(), struct{}{})
		if got, _ := list.([]Question); err != nil || len(got) != 2 {
			t.Errorf("with a long log of %q: %v, %d questions", *post.run, err, len(got))
		}
	}
}

// Questions that do not fit a reply are cut, and then left out: the request does not fail.
func TestQuestionsFitAReply(t *testing.T) {
	for _, tt := range []struct {
		runs, text int
		all        bool
	}{{10, bounds.ReplyBytes / 4, true}, {1000, 4 << 10, true}, {20_000, 100, false}} {
		list := make([]Question, tt.runs)
		for i := range list {
			list[i] = Question{RunID: client.NewID(), Agent: "root", Query: event.OpenQuery{Query: "q1", Question: strings.Repeat("x", tt.text)}}
		}
		got, err := fitQuestions(list)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, q := range got {
			size += len(q.RunID) + len(q.Agent) + len(q.Query.Query) + len(q.Query.Question)
		}
		if all := len(got) == tt.runs; all != tt.all || len(got) == 0 || size > bounds.ReplyBytes {
			t.Errorf("%d questions of %d bytes: %d are left, %d bytes", tt.runs, tt.text, len(got), size)
		}
	}
}
