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
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// answered checks the code of a refusal.
func answered(t *testing.T, what string, err error, code, text string) {
	t.Helper()
	refused := (*client.Error)(nil)
	if !errors.As(err, &refused) || refused.Code != code || !strings.Contains(refused.Text, text) || refused.Hint == "" {
		t.Errorf("%s: %v, want %s %s", what, err, code, text)
	}
}

// logs are the kinds of entries of each log of a run.
func logs(t *testing.T, h *Node, run string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := h.post.ReadRun(within(t), run, func(m mailbox.Message) error {
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

// deletes deletes a run and checks how many agents it had. Where that takes long, the
// answer may be the one to the second request: that it is deleted already.
func deletes(t *testing.T, c *client.Client, run string, agents int) {
	t.Helper()
	began := time.Now()
	got, err := c.Delete(within(t), run)
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
func TestADeletedRunIsGone(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := held(t)
	quick := script(t, again)
	h := start(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connect(t, h)
	run := begin(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	await(t, c, run, event.KindToolStarted, 2)
	_, err := c.Delete(within(t), run)
	answered(t, "at work", err, client.CodeConflict, "has not ended")
	if refused := (*client.Error)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "troupe cancel "+run) {
		t.Errorf("the hint: %v", err)
	}
	openGate(t, gate)
	finished(t, c, run, spec.Completed)
	deletes(t, c, run, 3)
	if got, err := c.Delete(within(t), run); err != nil || got != (client.Deleted{RunID: run, Already: true}) {
		t.Fatalf("the second deletion: %+v %v", got, err)
	}
	for at, kinds := range logs(t, h, run) {
		if !slices.Equal(kinds, []string{"closed"}) {
			t.Errorf("of %s there is left %v", at, kinds)
		}
	}
	if _, ok := row(t, c, run); ok {
		t.Error("it is listed")
	}
	_, err = c.Get(within(t), run)
	answered(t, "get", err, client.CodeGone, "was deleted")
	err = c.Events(within(t), run, nil, false, func(client.Event, []byte) error { return nil })
	answered(t, "events", err, client.CodeGone, "was deleted")
	_, err = c.Transcript(within(t), run, "")
	answered(t, "transcript", err, client.CodeGone, "was deleted")
	_, err = c.Export(within(t), run, "", nil)
	answered(t, "export", err, client.CodeGone, "was deleted")
	_, err = c.Run(within(t), client.RunRequest{RunID: run, Prompt: "again", Model: quick})
	answered(t, "the same id", err, client.CodeGone, "was deleted")
	_, err = c.Run(within(t), client.RunRequest{RunID: run, Resume: true})
	answered(t, "resume", err, client.CodeGone, "was deleted")
	_, err = c.Run(within(t), client.RunRequest{RunID: client.NewID(), Prompt: "again", Model: quick, Fork: run})
	answered(t, "fork", err, client.CodeGone, "was deleted")
	_, err = c.Cancel(within(t), client.CancelRequest{RunID: run})
	answered(t, "cancel", err, client.CodeGone, "was deleted")
	_, err = c.Delete(within(t), "never")
	answered(t, "never was", err, client.CodeNotFound, "there is no run")
	_, err = c.Delete(within(t), "*.>")
	answered(t, "hostile", err, client.CodeBad, "run_id")
}

// Kept results go with their run, and with no other.
func TestKeptResultsAreDeletedWithTheirRun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, agents := wordy(t)
	h := start(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connect(t, h)
	kept := begin(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "wordy"})
	finished(t, c, kept, spec.Completed)
	other := begin(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "wordy"})
	finished(t, c, other, spec.Completed)
	s, err := control.ReplayAgent(within(t), h.post, mailbox.At(other, "root"))
	if err != nil {
		t.Fatal(err)
	}
	_, ref, _ := strings.Cut(s.History[2].Results[0].Text, "ref ")
	ref = strings.TrimSuffix(ref, "]")
	if _, err := c.Delete(within(t), kept); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.blobs.Get(within(t), kept, ref, 0, 1); !errors.Is(err, mailbox.ErrNoBlob) {
		t.Errorf("its blob: %v", err)
	}
	if _, _, err := h.blobs.Get(within(t), other, ref, 0, 1); err != nil {
		t.Errorf("the other's blob: %v", err)
	}
	if _, ok := row(t, c, other); !ok {
		t.Error("the other is gone")
	}
}

// late appends a message that was in flight while a run was deleted.
func late(t *testing.T, h *Node, from, to mailbox.Address, n uint64, f agent.Fact) {
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
		_, err = mailbox.Put(within(t), h.post, to, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A late message for a deleted run activates no actor, in this process or in the next,
// however often it comes (PROTOCOL P14).
func TestALateLetterStartsNobodyAnew(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	family := script(t, family)
	h := start(t, state)
	c := connect(t, h)
	run := begin(t, c, client.RunRequest{Model: family})
	finished(t, c, run, spec.Completed)
	opened, err := control.ReplaySupervisor(within(t), h.post, run)
	if err != nil {
		t.Fatal(err)
	}
	child, err := control.ReplayAgent(within(t), h.post, mailbox.At(run, "root-1-0"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(within(t), run); err != nil {
		t.Fatal(err)
	}
	super := mailbox.At(run, mailbox.Super)
	for life := range 5 {
		tp := record(t, h)
		late(t, h, "", super, 0, opened.Run)
		late(t, h, super, mailbox.At(run, "root-1-0"), 2, agent.Submitted{Task: child.Task})
		late(t, h, super, mailbox.At(run, "root"), 2, agent.Canceled{Now: true})
		// An actor that had been activated would have appended by the time that another run is
		// over.
		next := begin(t, c, client.RunRequest{Model: family})
		finished(t, c, next, spec.Completed)
		for at, kinds := range logs(t, h, run) {
			for _, kind := range kinds {
				if !slices.Contains([]string{"closed", "opened", "submitted", "canceled", "resumed"}, kind) {
					t.Fatalf("life %d: %s says %v", life, at, kinds)
				}
			}
		}
		if told := tp.of(run); len(told) > 0 {
			t.Fatalf("life %d: it tells %v", life, told)
		}
		if _, ok := row(t, c, run); ok {
			t.Fatalf("life %d: it is listed", life)
		}
		_, err = c.Get(within(t), run)
		answered(t, "get", err, client.CodeGone, "was deleted")
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		h = start(t, state, func(c *Config) { c.ResumeAll = true })
		c = connect(t, h)
		if open, err := h.Unfinished(within(t)); err != nil || len(open) > 0 {
			t.Fatalf("life %d: unfinished: %+v %v", life, open, err)
		}
	}
}

// A run whose opener died before it was opened, one whose agent no shell gets
// through, and one that a process left before its logs were closed: all of them
// can be deleted.
func TestWhatNeverEndedInOrderIsDeleted(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	h := start(t, state)
	c := connect(t, h)
	past := history.Transcript{Messages: []model.Message{{Role: model.User, Text: "a"}}}
	if _, err := c.Recall(within(t), "unopened", past); err != nil {
		t.Fatal(err)
	}
	deletes(t, c, "unopened", 1)
	_, err := c.Run(within(t), client.RunRequest{RunID: "unopened", Prompt: "x", Model: script(t, again)})
	answered(t, "unopened", err, client.CodeGone, "was deleted")

	run := begin(t, c, client.RunRequest{Model: script(t, again)})
	finished(t, c, run, spec.Completed)
	ghost := mailbox.At(run, "root-9-9")
	for i := range uint64(5) { // so many activations that the log is given up
		body, err := mailbox.Marshal(agent.Resumed{Life: "x"})
		if err != nil {
			t.Fatal(err)
		}
		data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: ghost, Epoch: mailbox.Epoch{Lease: 1, Start: i}, Start: "x",
			Items: []mailbox.Item{{ID: "x", Kind: "resumed", Body: body}}})
		if err == nil {
			_, err = mailbox.Put(within(t), h.post, ghost, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	deletes(t, c, run, 2) // one was given up
	if left := logs(t, h, run)["root-9-9"]; left[0] != "closed" {
		t.Errorf("of it there is left %v", left)
	}
}

// prune deletes what ended long ago, and names it first where it is asked to.
func TestPruneDeletesWhatEndedLongAgo(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := held(t)
	h := start(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connect(t, h)
	live := begin(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	var ids []string
	for range 3 {
		ids = append(ids, begin(t, c, client.RunRequest{Model: script(t, again)}))
		finished(t, c, ids[len(ids)-1], spec.Completed)
	}
	for _, id := range ids {
		eventually(t, "the row is finished", func() bool {
			i, ok, err := h.runs.Get(within(t), id)
			return err == nil && ok && i.State == control.Finished && i.Started != ""
		})
	}
	for _, step := range []struct {
		request client.PruneRequest
		want    []string
	}{{client.PruneRequest{OlderThanMS: time.Hour.Milliseconds()}, []string{}}, {client.PruneRequest{DryRun: true}, ids},
		{client.PruneRequest{DryRun: true, After: ids[0]}, ids[1:]}, {client.PruneRequest{}, ids}, {client.PruneRequest{}, []string{}}} {
		p, err := c.Prune(within(t), step.request)
		if err != nil || !slices.Equal(p.Runs, step.want) || len(p.Kept) > 0 || p.Tombstones > 0 {
			t.Errorf("%+v: %+v %v", step.request, p, err)
		}
	}
	_, err := c.Prune(within(t), client.PruneRequest{OlderThanMS: -1})
	answered(t, "a negative age", err, client.CodeBad, "older_than_ms")
	list, err := c.List(within(t))
	if err != nil || len(list) != 1 || list[0].RunID != live {
		t.Errorf("left: %+v %v", list, err)
	}
	openGate(t, gate)
	finished(t, c, live, spec.Completed)
}

// A result that is written while its run is deleted does not bring it back.
func TestARunDeletedAtItsEndStaysDeleted(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	h := start(t, state)
	c := connect(t, h)
	quick := script(t, `default: [{text: done}]`)
	for range 20 {
		run := begin(t, c, client.RunRequest{Model: quick})
		finished(t, c, run, spec.Completed)
		if _, err := c.Delete(within(t), run); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = start(t, state, func(c *Config) { c.ResumeAll = true })
	list, err := connect(t, h).List(within(t))
	if raw, _ := json.Marshal(list); err != nil || len(list) > 0 {
		t.Errorf("they are back: %s %v", raw, err)
	}
}
