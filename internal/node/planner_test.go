package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

const crew = `
agents:
  surveyor: [{text: "surveyed ({{task}})"}]
  historian: [{text: "history ({{task}})"}]
  keeper:
    - calls: [{name: wait}]
    - text: "kept: {{last}} ({{task}})"
`

// A chain whose second step is in progress when its node dies continues on the next one:
// the first step is not repeated, and the third gets the answer.
//
//behaviour:shows H2
func TestChainContinuesOnTheNextNode(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state := t.TempDir()
	_, gate, agents := heldFamily(t)
	roots := func(c *Config) { c.Roots = []string{agents} }
	first := startNode(t, state, roots)
	c := connectClient(t, first)
	a, err := c.Chain(testContext(t), client.RunRequest{RunID: client.NewID(), Model: writeScript(t, crew), Agents: agents}, "Look.",
		client.Step{Agent: "surveyor"}, client.Step{Agent: "keeper", Part: "wait"}, client.Step{Agent: "historian"})
	if err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, a.RunID, event.KindToolStarted, 1)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)
	second := startNode(t, state, roots)
	c = connectClient(t, second)
	if err := second.actorNode.Resume(testContext(t), a.RunID); err != nil {
		t.Fatal(err)
	}
	r := waitFinished(t, c, a.RunID, spec.Completed).Result
	want := "history (Look.\n\nWhat keeper answered:\nkept: open\n (Look.\n\nYour part: wait\n\nWhat surveyor answered:\nsurveyed (Look.)))"
	if r.Text != want || len(r.Agents) != 4 || r.Partial {
		t.Errorf("%q %+v", r.Text, r.Agents)
	}
	for _, m := range r.Agents {
		if m.ID == spec.Root && (m.Tokens != 0 || m.Calls != 3 || m.Name != "chain") {
			t.Errorf("the chain itself: %+v", m)
		}
	}
}

// The consolidating agent gets all answers; a delegate gets the history.
func TestClientDelegateChainAndConsolidateOpenRuns(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	request := func() client.RunRequest { return client.RunRequest{RunID: client.NewID(), Model: writeScript(t, crew)} }
	a, err := c.Consolidate(testContext(t), request(), "Look.", client.Step{Agent: "historian", Part: "one line"},
		client.Step{Agent: "surveyor", Part: "left"}, client.Step{Agent: "surveyor", Part: "right"})
	if err != nil {
		t.Fatal(err)
	}
	r := waitFinished(t, c, a.RunID, spec.Completed).Result
	for _, text := range []string{"history (Look.\n\nYour part: one line", "surveyed (Look.\n\nYour part: left)", "surveyed (Look.\n\nYour part: right)"} {
		if !strings.Contains(r.Text, text) {
			t.Errorf("%q lacks %q", r.Text, text)
		}
	}
	next := request()
	next.Fork, next.Model = a.RunID, writeScript(t, `agents: {historian: [{text: "1"}, {text: "2"}, {text: "3"}, {text: "it knows: {{user}}"}]}`)
	d, err := c.Delegate(testContext(t), next, "historian", "Go on.")
	if err != nil {
		t.Fatal(err)
	}
	// Three replies stand in the history that it was given: its own is the fourth.
	if r := waitFinished(t, c, d.RunID, spec.Completed).Result; !strings.HasPrefix(r.Text, "it knows: ") {
		t.Errorf("%q", r.Text)
	}
}

// What cannot be followed is refused before anything is opened.
func TestPlansThatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	for prompt, told := range map[string]string{"Look at this.": "must name the agents of the plan", "historian > nobody: Look.": `there is no agent "nobody"`} {
		_, err := c.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Agent: "chain", Prompt: prompt, Model: "builtin/scout"})
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Code != client.CodeBad || !strings.Contains(refused.Text, told) || refused.Hint == "" {
			t.Errorf("%q: %v", prompt, err)
		}
	}
	r := client.RunRequest{RunID: client.NewID()}
	for name, open := range map[string]func() (client.RunAccepted, error){
		"no steps": func() (client.RunAccepted, error) { return c.Chain(testContext(t), r, "Look.") },
		"no task":  func() (client.RunAccepted, error) { return c.Delegate(testContext(t), r, "historian", " ") },
		"no name":  func() (client.RunAccepted, error) { return c.Delegate(testContext(t), r, "the historian", "Look.") },
		"steps in a task": func() (client.RunAccepted, error) {
			return c.Delegate(testContext(t), r, "historian", "Look:\n- auditor")
		},
	} {
		if a, err := open(); !errors.Is(err, client.ErrPlan) {
			t.Errorf("%s: %+v %v", name, a, err)
		}
	}
}
