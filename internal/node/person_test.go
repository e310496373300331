package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/mailbox"
)

// asker is an agent that asks at once.
const asker = `
agents:
  asker:
    - calls: [{name: ask_human, args: {question: "Which one?"}}]
    - text: "bought: {{last}}"
`

func writeAskerAgent(t *testing.T) (agents string) {
	t.Helper()
	agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(agents, "asker.md"), []byte("---\nname: asker\ndescription: Asks.\n---\nAsk.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return agents
}

// eventKinds are the kinds of a run's events so far.
func eventKinds(t *testing.T, c *client.Client, run string) []string {
	t.Helper()
	var list []string
	err := c.Events(testContext(t), run, nil, false, func(e client.Event, _ []byte) error {
		list = append(list, e.Kind)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func countKind(list []string, kind string) int {
	n := 0
	for _, k := range list {
		if k == kind {
			n++
		}
	}
	return n
}

// waitsForAPerson is how soon a run that is parked must be canceled (B6). It
// is three minutes in the promise, of which a slow machine may use a part.
const waitsForAPerson = time.Minute

// A run that waits for a person is canceled soon, before or after a
// restart of its node, and no model is asked for it (B6).
//
//behaviour:shows B6
func TestAParkedRunIsCanceledWithoutItsModel(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state, agents, model := t.TempDir(), writeAskerAgent(t), writeScript(t, asker)
	roots := func(c *Config) { c.Roots = []string{agents} }
	first := startNode(t, state, roots)
	c := connectClient(t, first)
	var ids []string
	for range 2 {
		id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "asker"})
		if info, err := c.Wait(testContext(t), id); err != nil || info.State != client.RunParked || info.Result.Reason != spec.NeedsHuman {
			t.Fatalf("%+v %v", info, err)
		}
		ids = append(ids, id)
	}
	cancel := func(id string) {
		began := time.Now()
		if _, err := c.Cancel(testContext(t), client.CancelRequest{RunID: id, Why: "enough"}); err != nil {
			t.Fatal(err)
		}
		awaitEvents(t, c, id, event.KindRunFinished, 1)
		waitFinished(t, c, id, spec.ByCancel)
		if took := time.Since(began); took > waitsForAPerson {
			t.Errorf("it took %s", took)
		}
		told := eventKinds(t, c, id)
		if countKind(told, event.KindModelStarted) != 1 || countKind(told, event.KindMessageAssistant) != 1 {
			t.Errorf("a model was asked after the cancel: %v", told)
		}
	}
	cancel(ids[0])
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c = connectClient(t, startNode(t, state, roots, func(c *Config) { c.ResumeAll = true }))
	cancel(ids[1])
}

// A question that a process asked is answered by a person after its end, and
// the next one goes on with the answer (E4).
//
//behaviour:shows E4
func TestAnAnswerWakesARunOfAnotherProcess(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state, agents, model := t.TempDir(), writeAskerAgent(t), writeScript(t, asker)
	roots := func(c *Config) { c.Roots = []string{agents} }
	first := startNode(t, state, roots)
	c := connectClient(t, first)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "asker"})
	if _, err := c.Wait(testContext(t), id); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c = connectClient(t, startNode(t, state, roots, func(c *Config) { c.ResumeAll = true }))
	open, err := c.Questions(testContext(t))
	if err != nil || len(open) != 1 || open[0].Question != "Which one?" || open[0].Reason != string(spec.NeedsHuman) {
		t.Fatalf("%+v %v", open, err)
	}
	if err := c.Answer(testContext(t), client.AnswerRequest{RunID: id, Agent: open[0].Agent, Query: open[0].Query, Decision: "text", Text: "the second"}); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, id, event.KindRunFinished, 1)
	if info := waitFinished(t, c, id, spec.Completed); info.Result.Text != "bought: a person answered: the second" {
		t.Errorf("%q", info.Result.Text)
	}
}

// An answer that no node has read yet counts: the user is not asked again, and a client
// that answers later learns that an answer was given.
//
//behaviour:shows E4
func TestFirstAnswerCountsBeforeItIsRead(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state, agents, model := t.TempDir(), writeAskerAgent(t), writeScript(t, asker)
	roots := func(c *Config) { c.Roots = []string{agents} }
	first := startNode(t, state, roots)
	c := connectClient(t, first)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "asker"})
	if _, err := c.Wait(testContext(t), id); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := startNode(t, state, roots, func(c *Config) { c.NoActors = true })
	c = connectClient(t, second)
	open, err := c.Questions(testContext(t))
	if err != nil || len(open) != 1 {
		t.Fatalf("%+v %v", open, err)
	}
	say := func(text string) error {
		return c.Answer(testContext(t), client.AnswerRequest{RunID: id, Query: open[0].Query, Decision: "text", Text: text})
	}
	if err := say("the second"); err != nil {
		t.Fatal(err)
	}
	if open, err := c.Questions(testContext(t)); err != nil || len(open) != 0 {
		t.Errorf("after the answer: %+v %v", open, err)
	}
	if info, err := c.Get(testContext(t), id); err != nil || info.State != client.RunInterrupted { // nobody asks, and this node runs no agents
		t.Errorf("a run whose only question is answered is %q, %v", info.State, err)
	}
	var refused *client.Error
	if err := say("the first"); !errors.As(err, &refused) || refused.Code != client.CodeConflict {
		t.Errorf("another answer: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	c = connectClient(t, startNode(t, state, roots, func(c *Config) { c.ResumeAll = true }))
	awaitEvents(t, c, id, event.KindRunFinished, 1)
	if info := waitFinished(t, c, id, spec.Completed); info.Result.Text != "bought: a person answered: the second" {
		t.Errorf("%q", info.Result.Text)
	}
}

// The built-in investigation does not loop, and asks no questions (A24).
//
//behaviour:shows A24
func TestBuiltinInvestigationTriggersNoLoopDetection(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir := newRepository(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Dir: dir, Model: "builtin/scout"})
	waitFinished(t, c, id, spec.Completed)
	told := eventKinds(t, c, id)
	if slices.Contains(told, event.KindLoopDetected) || slices.Contains(told, event.KindQueryAsked) || !slices.Contains(told, event.KindToolFinished) {
		t.Errorf("%v", told)
	}
}

// The names that the loop serves itself cannot be taken by a command of an
// agent file.
func TestACommandCannotTakeANameOfTheLoop(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	for _, name := range toolset.LoopTools {
		agents := t.TempDir()
		text := "---\nname: asker\ndescription: Asks.\nx-troupe:\n  tools: [{name: " + name + ", description: Mine., command: \"true\"}]\n---\nAsk.\n"
		if err := os.WriteFile(filepath.Join(agents, "asker.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
		_, err := connectClient(t, h).Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "Ask", Model: writeScript(t, asker), Agents: agents, Agent: "asker"})
		if err == nil || !strings.Contains(err.Error(), "the tool "+name+" is built in") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A run that is resumed with a time limit (--resume RUN --timeout D) has that much work
// time from then on; one that is resumed without keeps its limit.
//
//behaviour:shows A9
func TestAResumedRunGetsTheTimeThatIsAskedFor(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	agents := writeAskerAgent(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	const first, more = int64(time.Hour / time.Millisecond), int64(3 * time.Hour / time.Millisecond)
	id := beginRun(t, c, client.RunRequest{Model: writeScript(t, asker), Agents: agents, Agent: "asker", TimeoutMS: first})
	if info, err := c.Wait(testContext(t), id); err != nil || info.State != client.RunParked {
		t.Fatalf("%+v %v", info, err)
	}
	limits := func() spec.Limits {
		t.Helper()
		s, err := runlog.ReplayAgent(testContext(t), h.post, mailbox.At(id, "root"))
		if err != nil {
			t.Fatal(err)
		}
		return s.Task.Limits
	}
	var refused *client.Error
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: id, Resume: true, TimeoutMS: spec.TimeoutMaxMS + 1}); !errors.As(err, &refused) || refused.Code != client.CodeBad {
		t.Errorf("more than a year: %v", err)
	}
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: id, Resume: true}); err != nil {
		t.Fatal(err)
	}
	if l := limits(); l.SoftMS != first || l.HardMS != spec.HardLimitMS(first) {
		t.Errorf("resumed without a limit: %+v", l)
	}
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: id, Resume: true, TimeoutMS: more}); err != nil {
		t.Fatal(err)
	}
	open, err := c.Questions(testContext(t))
	if err != nil || len(open) != 1 {
		t.Fatalf("%+v %v", open, err)
	}
	if err := c.Answer(testContext(t), client.AnswerRequest{RunID: id, Query: open[0].Query, Decision: "text", Text: "the second"}); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, id, event.KindRunFinished, 1)
	waitFinished(t, c, id, spec.Completed)
	if l := limits(); l.SoftMS < more || l.SoftMS > more+first || l.HardMS-l.SoftMS != spec.HardLimitMS(more)-more {
		t.Errorf("resumed with %d ms: %+v", more, l)
	}
}
