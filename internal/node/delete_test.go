package node

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// checkRefusal checks the code of a refusal.
func checkRefusal(t *testing.T, what string, err error, code, text string) {
	t.Helper()
	refused := (*client.Error)(nil)
	if !errors.As(err, &refused) || refused.Code != code || !strings.Contains(refused.Text, text) || refused.Hint == "" {
		t.Errorf("%s: %v, want %s %s", what, err, code, text)
	}
}

// logKinds are the kinds of entries of each log of a run.
func logKinds(t *testing.T, h *Node, run string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := h.post.ReadRun(testContext(t), run, func(m mailbox.Message) error {
		e, err := mailbox.Decode(m.Data)
		if err == nil {
			all[m.To.Agent()] = append(all[m.To.Agent()], e.Items[0].Kind)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// askedAgain is after how long without an answer a client asks again.
const askedAgain = 3 * time.Second

// deleteRun deletes a run and checks how many agents it had. Where that takes long, the
// answer may be the one to the second request: that it is deleted already.
func deleteRun(t *testing.T, c *client.Client, run string, agents int) {
	t.Helper()
	began := time.Now()
	got, err := c.Delete(testContext(t), run)
	want := client.Deleted{RunID: run, Agents: agents}
	if time.Since(began) >= askedAgain && got.Already {
		want = client.Deleted{RunID: run, Already: true}
	}
	if err != nil || got != want {
		t.Fatalf("deletion of %s: %+v %v", run, got, err)
	}
}

// A live run is not deleted; one that has ended is removed everywhere, and clients that ask
// for it learn that it was deleted.
func TestDeletedRunIsRemovedEverywhere(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	quick := writeScript(t, again)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	run := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, run, event.KindToolStarted, 2)
	_, err := c.Delete(testContext(t), run)
	checkRefusal(t, "at work", err, client.CodeConflict, "has not ended")
	if refused := (*client.Error)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "troupe cancel "+run) {
		t.Errorf("the hint: %v", err)
	}
	openGate(t, gate)
	waitFinished(t, c, run, spec.Completed)
	deleteRun(t, c, run, 3)
	if got, err := c.Delete(testContext(t), run); err != nil || got != (client.Deleted{RunID: run, Already: true}) {
		t.Fatalf("the second deletion: %+v %v", got, err)
	}
	for at, kinds := range logKinds(t, h, run) {
		if !slices.Equal(kinds, []string{"closed"}) {
			t.Errorf("of %s there is left %v", at, kinds)
		}
	}
	if _, ok := findRow(t, c, run); ok {
		t.Error("it is listed")
	}
	_, err = c.Get(testContext(t), run)
	checkRefusal(t, "get", err, client.CodeGone, "was deleted")
	err = c.Events(testContext(t), run, nil, false, func(client.Event, []byte) error { return nil })
	checkRefusal(t, "events", err, client.CodeGone, "was deleted")
	_, err = c.Transcript(testContext(t), run, "")
	checkRefusal(t, "transcript", err, client.CodeGone, "was deleted")
	_, err = c.Export(testContext(t), run, "", nil)
	checkRefusal(t, "export", err, client.CodeGone, "was deleted")
	_, err = c.Run(testContext(t), client.RunRequest{RunID: run, Prompt: "again", Model: quick})
	checkRefusal(t, "the same id", err, client.CodeGone, "was deleted")
	_, err = c.Run(testContext(t), client.RunRequest{RunID: run, Resume: true})
	checkRefusal(t, "resume", err, client.CodeGone, "was deleted")
	_, err = c.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "again", Model: quick, Fork: run})
	checkRefusal(t, "fork", err, client.CodeGone, "was deleted")
	_, err = c.Cancel(testContext(t), client.CancelRequest{RunID: run})
	checkRefusal(t, "cancel", err, client.CodeGone, "was deleted")
	_, err = c.Delete(testContext(t), "never")
	checkRefusal(t, "never was", err, client.CodeNotFound, "there is no run")
	_, err = c.Delete(testContext(t), "*.>")
	checkRefusal(t, "hostile", err, client.CodeBad, "run_id")
}

// What a node has to record of a run after it was deleted makes no row of it.
func TestLateReportOfADeletedRunMakesNoRow(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	run := beginRun(t, c, client.RunRequest{Model: writeScript(t, again)})
	waitFinished(t, c, run, spec.Completed)
	deleteRun(t, c, run, 1)
	if err := newIndexWriter(h).writeOnce(run, runindex.Report{Node: "host", Result: &event.Result{Reason: spec.Completed}}); err != nil {
		t.Fatal(err)
	}
	if row, ok := findRow(t, c, run); ok {
		t.Errorf("it is listed: %+v", row)
	}
}

// Kept results go with their run, and with no other.
func TestKeptResultsAreDeletedWithTheirRun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, agents := writeWordyAgent(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	kept := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "wordy"})
	waitFinished(t, c, kept, spec.Completed)
	other := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "wordy"})
	waitFinished(t, c, other, spec.Completed)
	s, err := runlog.ReplayAgent(testContext(t), h.post, mailbox.At(other, "root"))
	if err != nil {
		t.Fatal(err)
	}
	_, ref, _ := strings.Cut(s.History[2].Results[0].Text, "ref ")
	ref = strings.TrimSuffix(ref, "]")
	if _, err := c.Delete(testContext(t), kept); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.blobs.Get(testContext(t), kept, ref, 0, 1); !errors.Is(err, mailbox.ErrNoBlob) {
		t.Errorf("its blob: %v", err)
	}
	if _, _, err := h.blobs.Get(testContext(t), other, ref, 0, 1); err != nil {
		t.Errorf("the other's blob: %v", err)
	}
	if _, ok := findRow(t, c, other); !ok {
		t.Error("the other is gone")
	}
}

// appendLate appends a message that was in flight while a run was deleted.
func appendLate(t *testing.T, h *Node, from, to mailbox.Address, n uint64, f agent.Fact) {
	t.Helper()
	body, err := mailbox.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	item := mailbox.Item{N: n, Kind: f.Kind(), Body: body}
	if from == "" {
		item.N, item.ID = 0, "late"
	}
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: from, Items: []mailbox.Item{item}})
	if err == nil {
		_, err = mailbox.Put(testContext(t), h.post, to, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A late message for a deleted run activates no actor, in this process or in the next,
// however often it comes (PROTOCOL P14).
func TestLateMessageActivatesNoDeletedRun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	family := writeScript(t, family)
	h := startNode(t, state)
	c := connectClient(t, h)
	run := beginRun(t, c, client.RunRequest{Model: family})
	waitFinished(t, c, run, spec.Completed)
	opened, err := runlog.ReplaySupervisor(testContext(t), h.post, run)
	if err != nil {
		t.Fatal(err)
	}
	child, err := runlog.ReplayAgent(testContext(t), h.post, mailbox.At(run, "root-1-0"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(testContext(t), run); err != nil {
		t.Fatal(err)
	}
	super := mailbox.At(run, mailbox.Super)
	for life := range 5 {
		tp := recordEvents(t, h)
		appendLate(t, h, "", super, 0, opened.Run)
		appendLate(t, h, super, mailbox.At(run, "root-1-0"), 2, agent.Submitted{Task: child.Task})
		appendLate(t, h, super, mailbox.At(run, "root"), 2, agent.Canceled{Now: true})
		// An actor that had been activated would have appended by the time that another run is
		// over.
		next := beginRun(t, c, client.RunRequest{Model: family})
		waitFinished(t, c, next, spec.Completed)
		for at, kinds := range logKinds(t, h, run) {
			for _, kind := range kinds {
				if !slices.Contains([]string{"closed", "opened", "submitted", "canceled", "resumed"}, kind) {
					t.Fatalf("life %d: %s says %v", life, at, kinds)
				}
			}
		}
		if told := tp.eventsOf(run); len(told) > 0 {
			t.Fatalf("life %d: it tells %v", life, told)
		}
		if _, ok := findRow(t, c, run); ok {
			t.Fatalf("life %d: it is listed", life)
		}
		_, err = c.Get(testContext(t), run)
		checkRefusal(t, "get", err, client.CodeGone, "was deleted")
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		h = startNode(t, state, func(c *Config) { c.ResumeAll = true })
		c = connectClient(t, h)
		if open, err := h.UnfinishedRuns(testContext(t)); err != nil || len(open) > 0 {
			t.Fatalf("life %d: unfinished: %+v %v", life, open, err)
		}
	}
}

// A run whose opener died before it was opened, one whose agent no shell gets
// through, and one that a process left before its logs were closed: all of them
// can be deleted.
func TestIncompleteRunsCanBeDeleted(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	h := startNode(t, state)
	c := connectClient(t, h)
	past := history.Transcript{Messages: []model.Message{{Role: model.User, Text: "a"}}}
	if _, err := c.Recall(testContext(t), "unopened", past); err != nil {
		t.Fatal(err)
	}
	deleteRun(t, c, "unopened", 1)
	_, err := c.Run(testContext(t), client.RunRequest{RunID: "unopened", Prompt: "x", Model: writeScript(t, again)})
	checkRefusal(t, "unopened", err, client.CodeConflict, "a history was sent to the id unopened")

	run := beginRun(t, c, client.RunRequest{Model: writeScript(t, again)})
	waitFinished(t, c, run, spec.Completed)
	ghost := mailbox.At(run, "root-9-9")
	for i := range uint64(5) { // so many activations that the log is given up
		body, err := mailbox.Marshal(agent.Resumed{Activation: "x"})
		if err != nil {
			t.Fatal(err)
		}
		data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: ghost, Epoch: mailbox.Epoch{Lease: 1, Start: i}, Start: "x",
			Items: []mailbox.Item{{ID: "x", Kind: "resumed", Body: body}}})
		if err == nil {
			_, err = mailbox.Put(testContext(t), h.post, ghost, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	deleteRun(t, c, run, 2) // one was given up
	if left := logKinds(t, h, run)["root-9-9"]; left[0] != "closed" {
		t.Errorf("of it there is left %v", left)
	}
}

// prune deletes what ended long ago, and names it first where it is asked to.
func TestPruneDeletesOldRuns(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	live := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	var ids []string
	for range 3 {
		ids = append(ids, beginRun(t, c, client.RunRequest{Model: writeScript(t, again)}))
		waitFinished(t, c, ids[len(ids)-1], spec.Completed)
	}
	for _, id := range ids {
		waitUntil(t, "the row is finished", func() bool {
			i, ok, err := h.runs.Get(testContext(t), id)
			return err == nil && ok && i.State == client.RunFinished && i.Started != ""
		})
	}
	for _, step := range []struct {
		request client.PruneRequest
		want    []string
	}{{client.PruneRequest{OlderThanMS: time.Hour.Milliseconds()}, []string{}}, {client.PruneRequest{DryRun: true}, ids},
		{client.PruneRequest{DryRun: true, After: ids[0]}, ids[1:]}, {client.PruneRequest{}, ids}, {client.PruneRequest{}, []string{}}} {
		p, err := c.Prune(testContext(t), step.request)
		if err != nil || !slices.Equal(p.Runs, step.want) || len(p.Kept) > 0 || p.Tombstones > 0 {
			t.Errorf("%+v: %+v %v", step.request, p, err)
		}
	}
	_, err := c.Prune(testContext(t), client.PruneRequest{OlderThanMS: -1})
	checkRefusal(t, "a negative age", err, client.CodeBad, "older_than_ms")
	list, err := c.List(testContext(t))
	if err != nil || len(list) != 1 || list[0].RunID != live {
		t.Errorf("left: %+v %v", list, err)
	}
	openGate(t, gate)
	waitFinished(t, c, live, spec.Completed)
}

// A result that is written while its run is deleted does not bring it back.
func TestARunDeletedAtItsEndStaysDeleted(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	h := startNode(t, state)
	c := connectClient(t, h)
	quick := writeScript(t, `default: [{text: done}]`)
	for range 20 {
		run := beginRun(t, c, client.RunRequest{Model: quick})
		waitFinished(t, c, run, spec.Completed)
		if _, err := c.Delete(testContext(t), run); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = startNode(t, state, func(c *Config) { c.ResumeAll = true })
	list, err := connectClient(t, h).List(testContext(t))
	if raw, _ := json.Marshal(list); err != nil || len(list) > 0 {
		t.Errorf("they are back: %s %v", raw, err)
	}
}
