package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// findRow is a run as a list has it.
func findRow(t *testing.T, c *client.Client, run string) (client.RunInfo, bool) {
	t.Helper()
	list, err := c.List(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if i.RunID == run {
			return i, true
		}
	}
	return client.RunInfo{}, false
}

// pause is the time between two checks of a test: polling without a pause would take a core
// from the code under test.
const pause = 10 * time.Millisecond

// waitUntil asks until it is so.
func waitUntil(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick, late := time.NewTicker(pause), time.After(patience)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("never: %s", what)
		}
	}
}

func TestTwentyRunsAtOnce(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir := t.TempDir() // no repository: 20 investigations start 220 programs in one
	writeFileAt(t, filepath.Join(dir, "app.log"), "2026-01-02T03:04:05Z ERROR request 1 failed\n")
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	c, tp := connectClient(t, h), recordEvents(t, h)
	const runs = 20
	var ids []string
	for i := range runs {
		ids = append(ids, beginRun(t, c, client.RunRequest{Prompt: fmt.Sprintf("Investigate, number %d", i), Dir: dir, Model: "builtin/scout", DisallowedTools: []string{"write_file"}}))
	}
	for i, id := range ids {
		info := waitFinished(t, c, id, spec.Completed)
		r := info.Result
		if r.Type != "result" || r.Subtype != "success" || r.Run != id || r.Text == "" || len(r.Agents) < 4 {
			t.Errorf("run %d: %+v", i, r)
		}
		if want := fmt.Sprintf("Investigate, number %d", i); info.Title != want || info.Model != "builtin/scout" || info.Node != "host" || info.Started == "" {
			t.Errorf("run %d: %+v", i, info)
		}
	}
	for i, id := range ids {
		_, raw := pagedEvents(t, c, id)
		sameEvents(t, tp.waitForEvents(t, id, raw), raw)
		// The index is written in parallel to the actor that reports the result.
		waitUntil(t, "the row is finished", func() bool {
			i, ok, err := h.runs.Get(testContext(t), id)
			return err == nil && ok && i.State == client.RunFinished && i.Title != "" && i.Result != nil
		})
		if r, ok := findRow(t, c, id); !ok || r.State != client.RunFinished || r.Title == "" {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}

// heldFamily is a family whose root waits for a gate before it ends: its work stays in progress
// until the test opens the gate.
func heldFamily(t *testing.T) (model, gate, agents string) { return heldFamilyBy(t, "read") }

// heldFamilyBy is held, by a tool of an effect class.
func heldFamilyBy(t *testing.T, class string) (model, gate, agents string) {
	t.Helper()
	gate, agents = newGate(t), t.TempDir()
	text := fmt.Sprintf(`---
name: keeper
description: Waits for a gate.
x-troupe:
  tools:
    - name: wait
      description: Waits for the gate.
      command: true < %q; echo open
      effect: %s
---
Wait.
`, gate, class)
	boss := "---\nname: boss\ndescription: Delegates.\nx-troupe:\n  delegates: [keeper]\n---\nDelegate.\n"
	for name, text := range map[string]string{"keeper.md": text, "boss.md": boss} {
		if err := os.WriteFile(filepath.Join(agents, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return writeScript(t, `
agents:
  boss:
    - calls:
        - {name: delegate, args: {agent: keeper, task: "first"}}
        - {name: delegate, args: {agent: keeper, task: "second"}}
    - text: "both: {{last}}"
  keeper:
    - calls: [{name: wait}]
    - text: "waited: {{last}}"
`), gate, agents
}

// awaitEvents returns at the first event of a kind that was not there before.
func awaitEvents(t *testing.T, c *client.Client, run, kind string, times int) {
	t.Helper()
	err := c.Events(testContext(t), run, nil, true, func(e client.Event, _ []byte) error {
		if e.Kind == kind {
			times--
		}
		if times == 0 {
			return client.ErrStop
		}
		return nil
	})
	if err != nil || times > 0 {
		t.Fatalf("%s: %v", kind, err)
	}
}

func TestTheNextHostFinishesTheRuns(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	model, gate, agents := heldFamily(t)
	roots := func(c *Config) { c.Roots = []string{agents} }
	first := startNode(t, state, roots)
	c := connectClient(t, first)
	var ids []string
	for range 3 {
		ids = append(ids, beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"}))
	}
	before := map[string]map[string]string{}
	for _, id := range ids {
		awaitEvents(t, c, id, event.KindToolStarted, 2)
		info, err := c.Get(testContext(t), id)
		if err != nil || info.State != client.RunLive || len(info.Result.Agents) != 3 {
			t.Errorf("under way: %+v %v", info, err)
		}
		if r, ok := findRow(t, c, id); !ok || r.State != client.RunLive || r.Result != nil {
			t.Errorf("row under way: %+v", r)
		}
		_, before[id] = pagedEvents(t, c, id)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)

	second := startNode(t, state, roots)
	c = connectClient(t, second)
	open, err := second.UnfinishedRuns(testContext(t))
	if err != nil || len(open) != len(ids) {
		t.Fatalf("unfinished: %+v %v", open, err)
	}
	if r, ok := findRow(t, c, ids[0]); !ok || r.State != client.RunLive {
		t.Errorf("before it is resumed: %+v", r)
	}
	for i, id := range ids {
		if i == 0 {
			err = second.actorNode.Resume(testContext(t), id)
		} else {
			_, err = c.Run(testContext(t), client.RunRequest{RunID: id, Resume: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		info := waitFinished(t, c, id, spec.Completed)
		if !strings.HasPrefix(info.Result.Text, "both: waited: open") {
			t.Errorf("result: %+v", info.Result)
		}
		_, after := pagedEvents(t, c, id)
		for published := range before[id] {
			if after[published] != before[id][published] {
				t.Errorf("%s was %s\nand is %s", published, before[id][published], after[published])
			}
		}
		if r, ok := findRow(t, c, id); !ok || r.State != client.RunFinished {
			t.Errorf("row at the end: %+v", r)
		}
	}
}

// The user decides about a call that may have had its effect: until then the run is parked,
// and every view shows that.
func TestParkedRunIsShownInEveryView(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	model, gate, agents := heldFamilyBy(t, "effect")
	roots := func(c *Config) { c.Roots = []string{agents} }
	first := startNode(t, state, roots)
	c := connectClient(t, first)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := startNode(t, state, roots, func(c *Config) { c.ResumeAll = true })
	c = connectClient(t, second)
	tp := recordEvents(t, second)
	info, err := c.Wait(testContext(t), id)
	if err != nil || info.State != client.RunParked || !info.Result.IsError || info.Result.Reason != spec.ResumeUnsafe {
		t.Fatalf("%+v %+v %v", info, info.Result, err)
	}
	if r, ok := findRow(t, c, id); !ok || r.State != client.RunParked || r.Result != nil {
		t.Errorf("row: %+v", r)
	}
	openGate(t, gate)
	var refused *client.Error
	for answered := 0; answered < 2; {
		open, err := c.Questions(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range open {
			a := client.AnswerRequest{RunID: id, Agent: q.Agent, Query: q.Query, Decision: "perhaps"}
			if err := c.Answer(testContext(t), a); !errors.As(err, &refused) || refused.Code != client.CodeBad {
				t.Errorf("perhaps: %v", err)
			}
			if q.RunID != id || q.Reason != string(spec.ResumeUnsafe) || q.Call == "" || q.Question == "" {
				t.Errorf("%+v", q)
			}
			a.Decision = "approve"
			// An agent drops a request whose id it has seen. That of an answer is told from all others.
			a.Request = client.NewID()
			if err := c.Steer(testContext(t), client.SteerRequest{RunID: id, Agent: q.Agent, Text: "mind the gate", Request: a.Request}); err != nil {
				t.Fatal(err)
			}
			if err := c.Answer(testContext(t), a); err != nil {
				t.Fatal(err)
			}
			awaitEvents(t, c, id, event.KindQueryAnswered, answered+1)
			answered++
		}
	}
	waitFinished(t, c, id, spec.Completed)
	_, raw := pagedEvents(t, c, id)
	for published, text := range tp.eventsOf(id) {
		if raw[published] != text {
			t.Errorf("%s was told as %s\nand is %s", published, text, raw[published])
		}
	}
	// A run that is over takes no more commands, and a cancel of it is no error.
	if err := c.Steer(testContext(t), client.SteerRequest{RunID: id, Text: "more"}); !errors.As(err, &refused) || refused.Code != client.CodeConflict {
		t.Errorf("steer: %v", err)
	}
	if _, err := c.Cancel(testContext(t), client.CancelRequest{RunID: id}); err != nil {
		t.Errorf("cancel: %v", err)
	}
}

// removeRow removes a run's row, as if the process had died before it wrote it.
func removeRow(t *testing.T, h *Node, run string) {
	t.Helper()
	js, err := jetstream.New(connectRole(t, h, bus.RoleNode))
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(testContext(t), h.names.RunBucket())
	if err == nil {
		err = kv.Purge(testContext(t), run)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A node that was not asked goes on with all that its log holds, also with a
// run whose row was never written.
func TestResumeAllFindsRunsMissingFromTheIndex(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	model, gate, agents := heldFamily(t)
	roots := func(c *Config) { c.Roots = []string{agents} }
	first := startNode(t, state, roots)
	c := connectClient(t, first)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 1)
	removeRow(t, first, id)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)
	second := startNode(t, state, roots, func(c *Config) { c.ResumeAll = true })
	waitFinished(t, connectClient(t, second), id, spec.Completed)
}

func TestADirectoryMustBeUnderARoot(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	root, other := t.TempDir(), t.TempDir()
	if err := os.Symlink(other, filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{root} })
	c := connectClient(t, h)
	for dir, code := range map[string]string{
		other: client.CodeForbidden, filepath.Join(root, "out"): client.CodeForbidden, filepath.Join(root, "..", filepath.Base(other)): client.CodeForbidden,
		"relative": client.CodeBad, filepath.Join(root, "nowhere"): client.CodeBad,
	} {
		for _, r := range []client.RunRequest{{Dir: dir}, {Agents: dir}} {
			r.RunID, r.Prompt, r.Model = client.NewID(), "look", "builtin/scout"
			_, err := c.Run(testContext(t), r)
			var refused *client.Error
			if !errors.As(err, &refused) || refused.Code != code || refused.Hint == "" {
				t.Errorf("%s: %+v", dir, err)
			}
			if _, err := c.Get(testContext(t), r.RunID); !errors.As(err, &refused) || refused.Code != client.CodeNotFound {
				t.Errorf("a refused run is there: %v", err)
			}
		}
	}
	id := beginRun(t, c, client.RunRequest{Dir: root, Model: writeScript(t, family)})
	waitFinished(t, c, id, spec.Completed)
}

// A run that was asked for twice is one run.
func TestARunIsOpenedOnce(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := startNode(t, t.TempDir())
	c, model := connectClient(t, h), writeScript(t, family)
	r := client.RunRequest{RunID: client.NewID(), Prompt: "go", Model: model}
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() { _, err := c.Run(context.Background(), r); errs <- err }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	waitFinished(t, c, r.RunID, spec.Completed)
	ids, raw := pagedEvents(t, c, r.RunID)
	started := 0
	for _, e := range raw {
		if strings.Contains(e, `"kind":"agent.started"`) {
			started++
		}
	}
	if started != 4 {
		t.Errorf("%d agents were started: %v", started, ids)
	}
	if list, err := c.List(testContext(t)); err != nil || len(list) != 1 {
		t.Errorf("list: %+v %v", list, err)
	}
}
