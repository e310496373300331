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
	"github.com/troupe-run/troupe/internal/control"
)

// row is a run as a list has it.
func row(t *testing.T, c *client.Client, run string) (client.RunInfo, bool) {
	t.Helper()
	list, err := c.List(within(t))
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

// eventually asks until it is so.
func eventually(t *testing.T, what string, so func() bool) {
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
	dir := repository(t)
	h := start(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	c, tp := connect(t, h), record(t, h)
	const runs = 20
	var ids []string
	for i := range runs {
		ids = append(ids, begin(t, c, client.RunRequest{Prompt: fmt.Sprintf("Investigate, number %d", i), Dir: dir, Model: "builtin/scout", DisallowedTools: []string{"write_file"}}))
	}
	for i, id := range ids {
		info := finished(t, c, id, spec.Completed)
		r := info.Result
		if r.Type != "result" || r.Subtype != "success" || r.Run != id || r.Text == "" || len(r.Agents) < 4 {
			t.Errorf("run %d: %+v", i, r)
		}
		if want := fmt.Sprintf("Investigate, number %d", i); info.Title != want || info.Model != "builtin/scout" || info.Node != "host" || info.Started == "" {
			t.Errorf("run %d: %+v", i, info)
		}
	}
	for i, id := range ids {
		_, raw := paged(t, c, id)
		sameEvents(t, tp.whole(t, id, raw), raw)
		// The index is written in parallel to the actor that reports the result.
		eventually(t, "the row is finished", func() bool {
			i, ok, err := h.runs.Get(within(t), id)
			return err == nil && ok && i.State == control.Finished && i.Title != "" && i.Result != nil
		})
		if r, ok := row(t, c, id); !ok || r.State != control.Finished || r.Title == "" {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}

// held is a family whose root waits for a gate before it ends: its work stays in progress
// until the test opens the gate.
func held(t *testing.T) (model, gate, agents string) { return heldBy(t, "read") }

// heldBy is held, by a tool of an effect class.
func heldBy(t *testing.T, class string) (model, gate, agents string) {
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
	return script(t, `
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

// await returns at the first event of a kind that was not there before.
func await(t *testing.T, c *client.Client, run, kind string, times int) {
	t.Helper()
	err := c.Events(within(t), run, nil, true, func(e client.Event, _ []byte) error {
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
	model, gate, agents := held(t)
	roots := func(c *Config) { c.Roots = []string{agents} }
	first := start(t, state, roots)
	c := connect(t, first)
	var ids []string
	for range 3 {
		ids = append(ids, begin(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"}))
	}
	before := map[string]map[string]string{}
	for _, id := range ids {
		await(t, c, id, event.KindToolStarted, 2)
		info, err := c.Get(within(t), id)
		if err != nil || info.State != control.Live || len(info.Result.Agents) != 3 {
			t.Errorf("under way: %+v %v", info, err)
		}
		if r, ok := row(t, c, id); !ok || r.State != control.Live || r.Result != nil {
			t.Errorf("row under way: %+v", r)
		}
		_, before[id] = paged(t, c, id)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)

	second := start(t, state, roots)
	c = connect(t, second)
	open, err := second.Unfinished(within(t))
	if err != nil || len(open) != len(ids) {
		t.Fatalf("unfinished: %+v %v", open, err)
	}
	if r, ok := row(t, c, ids[0]); !ok || r.State != control.Live {
		t.Errorf("before it is resumed: %+v", r)
	}
	for i, id := range ids {
		if i == 0 {
			err = second.Resume(within(t), id)
		} else {
			_, err = c.Run(within(t), client.RunRequest{RunID: id, Resume: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		info := finished(t, c, id, spec.Completed)
		if !strings.HasPrefix(info.Result.Text, "both: waited: open") {
			t.Errorf("result: %+v", info.Result)
		}
		_, after := paged(t, c, id)
		for published := range before[id] {
			if after[published] != before[id][published] {
				t.Errorf("%s was %s\nand is %s", published, before[id][published], after[published])
			}
		}
		if r, ok := row(t, c, id); !ok || r.State != control.Finished {
			t.Errorf("row at the end: %+v", r)
		}
	}
}

// The user decides about a call that may have had its effect: until then the run is parked,
// and every view shows that.
func TestAParkedRunSaysSo(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	model, gate, agents := heldBy(t, "effect")
	roots := func(c *Config) { c.Roots = []string{agents} }
	first := start(t, state, roots)
	c := connect(t, first)
	id := begin(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	await(t, c, id, event.KindToolStarted, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := start(t, state, roots, func(c *Config) { c.ResumeAll = true })
	c = connect(t, second)
	tp := record(t, second)
	info, err := c.Wait(within(t), id)
	if err != nil || info.State != control.Parked || !info.Result.IsError || info.Result.Reason != spec.ResumeUnsafe {
		t.Fatalf("%+v %+v %v", info, info.Result, err)
	}
	if r, ok := row(t, c, id); !ok || r.State != control.Parked || r.Result != nil {
		t.Errorf("row: %+v", r)
	}
	openGate(t, gate)
	var refused *client.Error
	for answered := 0; answered < 2; {
		open, err := c.Questions(within(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range open {
			a := client.AnswerRequest{RunID: id, Agent: q.Agent, Query: q.Query, Decision: "perhaps"}
			if err := c.Answer(within(t), a); !errors.As(err, &refused) || refused.Code != client.CodeBad {
				t.Errorf("perhaps: %v", err)
			}
			if q.RunID != id || q.Reason != string(spec.ResumeUnsafe) || q.Call == "" || q.Question == "" {
				t.Errorf("%+v", q)
			}
			a.Decision = "approve"
			if err := c.Answer(within(t), a); err != nil {
				t.Fatal(err)
			}
			await(t, c, id, event.KindQueryAnswered, answered+1)
			answered++
		}
	}
	finished(t, c, id, spec.Completed)
	_, raw := paged(t, c, id)
	for published, text := range tp.of(id) {
		if raw[published] != text {
			t.Errorf("%s was told as %s\nand is %s", published, text, raw[published])
		}
	}
	// A run that is over takes no more commands, and a cancel of it is no error.
	if err := c.Steer(within(t), client.SteerRequest{RunID: id, Text: "more"}); !errors.As(err, &refused) || refused.Code != client.CodeConflict {
		t.Errorf("steer: %v", err)
	}
	if _, err := c.Cancel(within(t), client.CancelRequest{RunID: id}); err != nil {
		t.Errorf("cancel: %v", err)
	}
}

// forget removes a run's row, as if the process had died before it wrote it.
func forget(t *testing.T, h *Node, run string) {
	t.Helper()
	js, err := jetstream.New(role(t, h, bus.RoleNode))
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(within(t), h.names.RunBucket())
	if err == nil {
		err = kv.Purge(within(t), run)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A node that was not asked goes on with all that its log holds, also with a
// run whose row was never written.
func TestResumeAllTakesUpWhatTheIndexMissed(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	model, gate, agents := held(t)
	roots := func(c *Config) { c.Roots = []string{agents} }
	first := start(t, state, roots)
	c := connect(t, first)
	id := begin(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	await(t, c, id, event.KindToolStarted, 1)
	forget(t, first, id)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)
	second := start(t, state, roots, func(c *Config) { c.ResumeAll = true })
	finished(t, connect(t, second), id, spec.Completed)
}

func TestADirectoryMustBeUnderARoot(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	root, other := t.TempDir(), t.TempDir()
	if err := os.Symlink(other, filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	h := start(t, t.TempDir(), func(c *Config) { c.Roots = []string{root} })
	c := connect(t, h)
	for dir, code := range map[string]string{
		other: client.CodeForbidden, filepath.Join(root, "out"): client.CodeForbidden, filepath.Join(root, "..", filepath.Base(other)): client.CodeForbidden,
		"relative": client.CodeBad, filepath.Join(root, "nowhere"): client.CodeBad,
	} {
		for _, r := range []client.RunRequest{{Dir: dir}, {Agents: dir}} {
			r.RunID, r.Prompt, r.Model = client.NewID(), "look", "builtin/scout"
			_, err := c.Run(within(t), r)
			var refused *client.Error
			if !errors.As(err, &refused) || refused.Code != code || refused.Hint == "" {
				t.Errorf("%s: %+v", dir, err)
			}
			if _, err := c.Get(within(t), r.RunID); !errors.As(err, &refused) || refused.Code != client.CodeNotFound {
				t.Errorf("a refused run is there: %v", err)
			}
		}
	}
	id := begin(t, c, client.RunRequest{Dir: root, Model: script(t, family)})
	finished(t, c, id, spec.Completed)
}

// A run that was asked for twice is one run.
func TestARunIsOpenedOnce(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := start(t, t.TempDir())
	c, model := connect(t, h), script(t, family)
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
	finished(t, c, r.RunID, spec.Completed)
	ids, raw := paged(t, c, r.RunID)
	started := 0
	for _, e := range raw {
		if strings.Contains(e, `"kind":"agent.started"`) {
			started++
		}
	}
	if started != 4 {
		t.Errorf("%d agents were started: %v", started, ids)
	}
	if list, err := c.List(within(t)); err != nil || len(list) != 1 {
		t.Errorf("list: %+v %v", list, err)
	}
}
