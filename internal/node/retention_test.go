package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/mailbox"
)

// removals are the events of removed runs.
type removals struct {
	mu   sync.Mutex
	why  map[string][]string // by run
	came chan struct{}
}

// recordRemovals records the events of removed runs that a connection sees.
func recordRemovals(t *testing.T, nc *nats.Conn) *removals {
	t.Helper()
	r := &removals{why: map[string][]string{}, came: make(chan struct{}, 1)}
	_, err := nc.Subscribe("troupe.evt.*.super."+event.KindRunRemoved, func(m *nats.Msg) {
		var e client.Event
		var d event.RunRemoved
		err := errors.Join(json.Unmarshal(m.Data, &e), json.Unmarshal(e.Data, &d), control.ValidateEvent(m.Data))
		if err != nil || d.Bytes == 0 || d.Ended == "" {
			t.Errorf("%s: %v", m.Data, err)
		}
		r.mu.Lock()
		r.why[e.Run] = append(r.why[e.Run], d.Why)
		r.mu.Unlock()
		select {
		case r.came <- struct{}{}:
		default: // a signal waits already
		}
	})
	if err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	return r
}

// await waits until these runs were removed, each once and for this reason, and checks that no others were.
func (r *removals) await(t *testing.T, why string, runs ...string) {
	t.Helper()
	late := time.After(patience)
	for {
		r.mu.Lock()
		got := maps.Clone(r.why)
		r.mu.Unlock()
		whole := len(got) >= len(runs)
		for run, reasons := range got {
			if !slices.Contains(runs, run) || !slices.Equal(reasons, []string{why}) {
				t.Fatalf("%s was removed for %v; want %s for %v", run, reasons, why, runs)
			}
		}
		if whole {
			return
		}
		select {
		case <-r.came:
		case <-late:
			t.Fatalf("removed are %v, want %s for %v", got, why, runs)
		}
	}
}

// checkRemoved checks that nothing but tombstones is left of a run.
func checkRemoved(t *testing.T, h *Node, c *client.Client, run string) {
	t.Helper()
	for at, kinds := range logKinds(t, h, run) {
		if !slices.Equal(kinds, []string{"closed"}) {
			t.Errorf("of %s there is left %v", at, kinds)
		}
	}
	if _, ok := findRow(t, c, run); ok {
		t.Errorf("%s is listed", run)
	}
	if used, _, err := h.blobs.Room(testContext(t), run); used > 0 || err != nil {
		t.Errorf("%s has blobs of %d bytes, %v", run, used, err)
	}
	_, err := c.Get(testContext(t), run)
	checkRefusal(t, "get", err, client.CodeGone, "was deleted")
}

// Runs that ended longer ago than the age go with everything that they stored, on both stores of logs. A run at work, one
// that is parked, and a run of a conversation that is at work stay, however old they are.
//
//behaviour:shows K17
func TestRetentionRemovesRunsByAge(t *testing.T) {
	t.Parallel()
	for _, store := range []string{statedir.LogsInFiles, statedir.LogsInJetStream} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			noLeaks(t)
			wordy, wordyAgents := writeWordyAgent(t)
			quick := writeScript(t, "default: [{text: done}, {text: at last, delay: 10m}]")
			var later atomic.Int64
			later.Store(int64(-time.Hour)) // until the removals are watched
			dir := t.TempDir()
			h := startNode(t, dir, func(c *Config) {
				c.LogStore, c.Roots, c.RetainAge = store, []string{wordyAgents}, 4*time.Hour
			})
			c := connectClient(t, h)
			old := beginRun(t, c, client.RunRequest{Model: wordy, Agents: wordyAgents, Agent: "wordy"})
			waitFinished(t, c, old, spec.Completed)
			said := beginRun(t, c, client.RunRequest{Model: quick, Conversation: "busy"})
			waitFinished(t, c, said, spec.Completed)
			idle := beginRun(t, c, client.RunRequest{Model: quick, Conversation: "idle"})
			waitFinished(t, c, idle, spec.Completed)
			live := beginRun(t, c, client.RunRequest{Model: quick, Conversation: "busy"})
			parked := beginRun(t, c, client.RunRequest{Model: writeScript(t, "default:\n  - calls: [{name: ask_human, args: {question: \"What?\"}}]\n  - {text: done}\n")})
			waitUntil(t, "it is parked", func() bool { i, ok := findRow(t, c, parked); return ok && i.State == client.RunParked })
			if used, _, err := h.blobs.Room(testContext(t), old); used == 0 || err != nil {
				t.Fatalf("the run has no blobs: %v", err)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}

			h = startNode(t, dir, func(c *Config) {
				c.Roots, c.RetainAge, c.ResumeAll = []string{wordyAgents}, 4*time.Second, true
				c.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
			})
			c = connectClient(t, h)
			removed := recordRemovals(t, connectRole(t, h, bus.RoleObserver))
			later.Store(int64(5 * time.Hour))
			removed.await(t, "age", old, idle)
			checkRemoved(t, h, c, old)
			checkRemoved(t, h, c, idle)
			talks, err := c.Conversations().List(testContext(t), client.ConversationsRequest{})
			if err != nil || len(talks) != 1 || talks[0].Conversation != "busy" || talks[0].Count != 2 {
				t.Errorf("conversations: %+v %v", talks, err)
			}
			for _, run := range []string{said, live, parked} {
				if _, ok := findRow(t, c, run); !ok {
					t.Errorf("%s is gone", run)
				}
			}
			if _, err := c.Cancel(testContext(t), client.CancelRequest{RunID: live, Now: true}); err != nil {
				t.Fatal(err)
			}
			removed.await(t, "age", old, idle, said, live)
			if _, ok := findRow(t, c, parked); !ok {
				t.Error("the parked run is gone")
			}
		})
	}
}

// Where logs and blobs hold more than the size, the run that ended first goes, and no more than needed.
//
//behaviour:shows K17
func TestRetentionRemovesTheOldestRunsBySize(t *testing.T) {
	t.Parallel()
	for _, store := range []string{statedir.LogsInFiles, statedir.LogsInJetStream} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			noLeaks(t)
			model, agents := writeWordyAgent(t)
			dir := t.TempDir()
			h := startNode(t, dir, func(c *Config) { c.LogStore, c.Roots = store, []string{agents} })
			c := connectClient(t, h)
			var runs []string
			for range 3 {
				run := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "wordy"})
				waitFinished(t, c, run, spec.Completed)
				runs = append(runs, run)
			}
			stored, _, err := h.blobs.Room(testContext(t), "")
			logs, _, failed := h.post.Room(testContext(t))
			if measure := logsStored(h); measure != nil {
				logs, _, failed = measure(testContext(t))
			}
			if err := errors.Join(err, failed, h.Close()); err != nil {
				t.Fatal(err)
			}
			h = startNode(t, dir, func(c *Config) {
				c.RetainAge, c.RetainBytes = -1, int64(stored+logs-1)
				c.now = func() time.Time { return time.Now().Add(2 * time.Hour) } // results may be read for an hour
			})
			c = connectClient(t, h)
			recordRemovals(t, connectRole(t, h, bus.RoleObserver)).await(t, "size", runs[0])
			checkRemoved(t, h, c, runs[0])
			list, err := c.List(testContext(t))
			if err != nil || len(list) != 2 || list[0].RunID != runs[2] || list[1].RunID != runs[1] {
				t.Errorf("left: %+v %v", list, err)
			}
		})
	}
}

// Of two nodes on one server one removes runs, each once. After its death the other goes on.
//
//behaviour:shows K17
func TestOneNodeOfAClusterRemovesRuns(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	start := func(name string) *Node {
		return startNode(t, t.TempDir(), func(c *Config) {
			c.Name, c.ResumeAll, c.LeaseTTL, c.Bus, c.RetainAge = name, true, shard.TTLMin, e.ConnectOptions(bus.RoleNode), 4*time.Second
		})
	}
	nodes := []*Node{start("one"), start("two")}
	waitForSpread(t, nodes...)
	observer, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(observer.Close)
	removed := recordRemovals(t, observer)
	quick := writeScript(t, "default: [{text: done}]")
	var runs []string
	begin := func(c *client.Client) {
		for range 8 {
			run := beginRun(t, c, client.RunRequest{Model: quick})
			waitFinished(t, c, run, spec.Completed)
			runs = append(runs, run)
		}
	}
	c := connectClient(t, nodes[1])
	begin(c)
	removed.await(t, "age", runs...)
	for _, run := range runs {
		checkRemoved(t, nodes[1], c, run)
	}
	holds := func(h *Node) bool {
		is, err := h.logOwner.Inspect().Keeper.HoldJob(testContext(t), "retention")
		return is && err == nil
	}
	holder, other := nodes[0], nodes[1]
	if holds(other) {
		holder, other = other, holder
	}
	if !holds(holder) || holds(other) {
		t.Fatal("not one node has the job")
	}
	holder.cutNetwork()
	c = connectClient(t, other)
	begin(c)
	removed.await(t, "age", runs...)
	if !holds(other) {
		t.Error("the other node has not taken the job")
	}
}

// failingStore is a store whose process dies at a removal: that one and all that follow fail.
type failingStore struct {
	mailbox.Store
	left *atomic.Int64 // removals before
}

var errProcessDied = errors.New("the process died")

func (f failingStore) Purge(ctx context.Context, at mailbox.Address, before uint64) error {
	if f.left.Add(-1) < 0 {
		return errProcessDied
	}
	return f.Store.Purge(ctx, at, before)
}

// Wherever the process dies during a removal, no client sees a part of the run, and the next node removes the rest.
//
//behaviour:shows K17
func TestRemovalThatWasCutShort(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	const logs = 5 // of the family: the supervisor, a root and three children
	for died := range int64(logs) {
		dir := t.TempDir()
		var left atomic.Int64
		left.Store(died)
		h := startNode(t, dir, func(c *Config) {
			c.watchRequests = func(s mailbox.Store) mailbox.Store { return failingStore{s, &left} }
		})
		c := connectClient(t, h)
		run := beginRun(t, c, client.RunRequest{Model: writeScript(t, family)})
		waitFinished(t, c, run, spec.Completed)
		if _, err := c.Delete(testContext(t), run); err == nil || !strings.Contains(err.Error(), errProcessDied.Error()) {
			t.Fatalf("after %d logs: %v", died, err)
		}
		checkHidden := func() {
			t.Helper()
			if _, ok := findRow(t, c, run); ok {
				t.Errorf("after %d logs it is listed", died)
			}
			_, err := c.Get(testContext(t), run)
			checkRefusal(t, "get", err, client.CodeGone, "was deleted")
			_, err = c.Run(testContext(t), client.RunRequest{RunID: run, Resume: true})
			checkRefusal(t, "resume", err, client.CodeGone, "was deleted")
		}
		checkHidden()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		h = startNode(t, dir, func(c *Config) { c.RetainAge, c.RetainBytes, c.ResumeAll = -1, -1, true })
		c = connectClient(t, h)
		checkHidden()
		waitUntil(t, "the row is gone", func() bool {
			_, ok, err := h.runs.Get(testContext(t), run)
			return !ok && err == nil
		})
		checkRemoved(t, h, c, run)
	}
}

// Attachments of runs that nobody opens are no reason to remove runs: whoever may attach could otherwise have all of them
// removed. They go themselves once they are old.
//
//behaviour:shows K17
func TestAttackAttachmentsRemoveNoRuns(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir := t.TempDir()
	h := startNode(t, dir)
	c := connectClient(t, h)
	run := beginRun(t, c, client.RunRequest{Model: writeScript(t, "default: [{text: done}]")})
	waitFinished(t, c, run, spec.Completed)
	logs, _, err := h.post.Room(testContext(t))
	for range 3 {
		_, failed := c.Attach(testContext(t), client.NewID(), "a.txt", "text/plain", bytes.Repeat([]byte("x"), 1<<20))
		err = errors.Join(err, failed)
	}
	if err := errors.Join(err, h.Close()); err != nil {
		t.Fatal(err)
	}
	h = startNode(t, dir, func(c *Config) {
		c.RetainAge, c.RetainBytes = -1, int64(logs)+1<<20
		c.now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	})
	ctx := testContext(t)
	for used := uint64(1 << 20); used >= 1<<20; { // names of removed blobs stay
		if used, _, err = h.blobs.Room(testContext(t), ""); err != nil {
			t.Fatal(err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the attachments stay")
		}
	}
	if err := h.Close(); err != nil { // which waits for the end of the pass
		t.Fatal(err)
	}
	c = connectClient(t, startNode(t, dir))
	if list, err := c.List(testContext(t)); err != nil || len(list) != 1 {
		t.Errorf("left: %+v %v", list, err)
	}
}
