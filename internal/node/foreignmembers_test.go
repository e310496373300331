package node

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/test/a2apeer"
)

// askQuestion waits for the question of a run, answers it, and returns its text.
func askQuestion(t *testing.T, c *client.Client, id, answer string) string {
	t.Helper()
	awaitEvents(t, c, id, event.KindQueryAsked, 1)
	open, err := c.Questions(testContext(t))
	if err != nil || len(open) != 1 {
		t.Fatalf("%+v %v", open, err)
	}
	if err := c.Answer(testContext(t), client.AnswerRequest{RunID: id, Query: open[0].Query, Decision: spec.TextOnly, Text: answer}); err != nil {
		t.Fatal(err)
	}
	return open[0].Question
}

// Several calls of one reply work at the same time, also beside one in the background, whose answer comes as a message.
//
//behaviour:shows H5
func TestForeignAgentsWorkAtTheSameTime(t *testing.T) {
	t.Parallel()
	dir := writeBoss(t, "cc/derek/reviewer")
	h := startBossNode(t, dir)
	var all sync.WaitGroup
	all.Add(3)
	startPeer(t, connectRole(t, h, bus.RoleNode), "cc/derek/reviewer", func(p *foreignPeer, m *nats.Msg) {
		go func() { // none is answered before all have come
			all.Done()
			all.Wait()
			p.send(m, `{"type":"status","data":"ack"}`, `{"type":"response","data":"Seen: `+strings.Trim(string(m.Data[len(`{"prompt":"`):]), `"}`)+`"}`, "")
		}()
	})
	model := writeScript(t, `
agents:
  boss:
    - calls:
        - {name: delegate, args: {agent: cc/derek/reviewer, task: "A."}}
        - {name: delegate, args: {agent: cc/derek/reviewer, task: "B."}}
        - {name: delegate, args: {agent: cc/derek/reviewer, task: "C.", background: true}}
    - text: "Waiting."
    - text: "All: {{last}}"
`)
	id, c := askBoss(t, h, client.RunRequest{Prompt: "Go.", Agents: dir, Model: model})
	info := waitFinished(t, c, id, spec.Completed)
	events := strings.Join(eventsOfKind(t, c, id, event.KindDelegationFinished), "\n")
	for _, want := range []string{"Seen: A.", "Seen: B.", "Seen: C."} {
		if !strings.Contains(events+info.Result.Text, want) {
			t.Errorf("%q is missing in %s %s", want, events, info.Result.Text)
		}
	}
	if n := len(eventsOfKind(t, c, id, event.KindAgentSpawned)); n != 4 {
		t.Errorf("%d agents were started", n)
	}
}

// An answer must fit the schema of the delegation: the agent is told it, and is asked again with what is wrong.
//
//behaviour:shows H5
func TestForeignAgentAnswersByASchema(t *testing.T) {
	t.Parallel()
	dir := writeBoss(t, "cc/derek/reviewer")
	h := startBossNode(t, dir)
	p := startPeer(t, connectRole(t, h, bus.RoleNode), "cc/derek/reviewer", func(p *foreignPeer, m *nats.Msg) {
		answer := `{\"grade\":\"A\"}`
		if strings.Contains(string(m.Data), "What is missing") {
			answer = `{\"grade\":1}`
		}
		p.send(m, `{"type":"status","data":"ack"}`, `{"type":"response","data":"`+answer+`"}`, "")
	})
	model := writeScript(t, `
agents:
  boss:
    - calls: [{name: delegate, args: {agent: cc/derek/reviewer, task: "Grade A.", schema: {type: object, properties: {grade: {type: integer}}, required: [grade]}}}]
    - text: "It said: {{last}}"
`)
	id, c := askBoss(t, h, client.RunRequest{Prompt: "Go.", Agents: dir, Model: model})
	if info := waitFinished(t, c, id, spec.Completed); info.Result.Text != `It said: {"grade":1}` {
		t.Errorf("%+v", info.Result)
	}
	first, second := string(p.awaitPrompt().Data), string(p.awaitPrompt().Data)
	if !strings.Contains(first, "of this schema") || !strings.Contains(second, "Grade A.") || !strings.Contains(second, "You have answered") {
		t.Errorf("%s\n%s", first, second)
	}
}

// A question of the agent is one of the run: a person answers, and the answer goes back into the same stream.
//
//behaviour:shows H5
func TestForeignAgentAsksAPerson(t *testing.T) {
	t.Parallel()
	dir, model := writeBoss(t, "cc/derek/reviewer"), writeScript(t, bossScript)
	h := startBossNode(t, dir)
	nc := connectRole(t, h, bus.RoleNode)
	startPeer(t, nc, "cc/derek/reviewer", func(p *foreignPeer, m *nats.Msg) {
		reply := "agents.query.cc.derek.x1"
		_, err := p.nc.Subscribe(reply, func(a *nats.Msg) {
			p.send(m, `{"type":"response","data":" Told: `+strings.ReplaceAll(string(a.Data), `"`, `'`)+`"}`, "")
		})
		if err != nil {
			p.t.Error(err)
		}
		p.send(m, `{"type":"status","data":"ack"}`, `{"type":"response","data":"I asked."}`, `{"type":"query","data":{"id":"1","reply_subject":"`+reply+`","prompt":"Which one?"}}`)
	})
	id, c := askBoss(t, h, client.RunRequest{Prompt: "cc/derek/reviewer", Agents: dir, Model: model, LoopOptions: &spec.LoopOptions{AskPeople: true}})
	if q := askQuestion(t, c, id, "The left one."); q != "cc/derek/reviewer asks: Which one?" {
		t.Errorf("the question is %q", q)
	}
	if info := waitFinished(t, c, id, spec.Completed); info.Result.Text != "It said: I asked. Told: {'prompt':'The left one.'}" {
		t.Errorf("%+v", info.Result)
	}
}

// The same for an agent of A2A whose task needs input: the answer is a further message to its task.
//
//behaviour:shows H5
func TestA2AAgentAsksAPerson(t *testing.T) {
	t.Parallel()
	p := a2apeer.Start(t, true, func(w http.ResponseWriter, r a2apeer.Request) {
		if r.Params.Message.TaskID == "1" {
			a2apeer.Send(w, a2apeer.StatusEvent("1", "WORKING", ""), a2apeer.TextEvent("1", "a", "Told: "+r.Task()), a2apeer.StatusEvent("1", "COMPLETED", ""))
			return
		}
		a2apeer.Send(w, a2apeer.TaskEvent("1", "WORKING"), a2apeer.StatusEvent("1", "INPUT_REQUIRED", "Which one?"))
	})
	dir, model := writeBoss(t, "a2a/reviewer"), writeScript(t, bossScript)
	h := startBossNode(t, dir, nameA2AAgent(p))
	id, c := askBoss(t, h, client.RunRequest{Prompt: "a2a/reviewer", Agents: dir, Model: model, LoopOptions: &spec.LoopOptions{AskPeople: true}})
	if q := askQuestion(t, c, id, "The left one."); q != "a2a/reviewer asks: Which one?" {
		t.Errorf("the question is %q", q)
	}
	if info := waitFinished(t, c, id, spec.Completed); info.Result.Text != "It said: Told: The left one." || p.Tasks() != 2 {
		t.Errorf("%+v, %d messages", info.Result, p.Tasks())
	}
}

// What is charged for an agent, in the settings or in the agent file, is booked for each delegation, so that a limit in money
// holds without consent.
//
//behaviour:shows H5
func TestChargesForForeignAgents(t *testing.T) {
	t.Parallel()
	settings := func(c *Config) { c.DelegateCharges = map[string]float64{"cc/derek/*": 0.6} }
	ofFile := func(dir string) {
		path := dir + "/boss.md"
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.Replace(string(text), "x-troupe:\n", "x-troupe:\n  delegate_charges: {cc/derek/reviewer: 0.6}\n", 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	model := writeScript(t, `
agents:
  boss:
    - calls: [{name: delegate, args: {agent: cc/derek/reviewer, task: "A."}}]
    - calls: [{name: delegate, args: {agent: cc/derek/reviewer, task: "B."}}]
    - text: "[done] It said: {{last}}"
`)
	for name, changes := range map[string][]func(*Config){"settings": {settings}, "file": nil} {
		dir := writeBoss(t, "cc/derek/reviewer")
		if name == "file" {
			ofFile(dir)
		}
		h := startBossNode(t, dir, changes...)
		p := startPeer(t, connectRole(t, h, bus.RoleNode), "cc/derek/reviewer", func(p *foreignPeer, m *nats.Msg) {
			p.send(m, `{"type":"response","data":"done"}`, "")
		})
		id, c := askBoss(t, h, client.RunRequest{Prompt: "Go.", Agents: dir, Model: model, MaxBudgetUSD: 1})
		info := waitFinished(t, c, id, spec.Completed)
		if r := info.Result; r.CostUSD != 0.6 || !r.CostKnown || !r.CostEstimated || !strings.Contains(r.Text, "the budget does not cover a call of cc/derek/reviewer, for which $0.6 is charged") || len(p.prompts) != 1 {
			t.Errorf("%s: %+v, %d prompts", name, r, len(p.prompts))
		}
	}
}
