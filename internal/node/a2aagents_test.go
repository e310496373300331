package node

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/test/a2apeer"
)

// a2aToken is the credential of the agents of these tests, in the variable REVIEWER of a node.
const a2aToken = "tk-9a77b1c0-reviewer"

// nameA2AAgent names an agent in the settings of a node, as a2a/reviewer.
func nameA2AAgent(p *a2apeer.Peer) func(*Config) {
	return func(c *Config) {
		c.A2AAgents = []a2aclient.Agent{{Name: "reviewer", URL: p.URL, TokenEnv: "REVIEWER"}}
		c.Env = func(name string) string { return map[string]string{"REVIEWER": a2aToken}[name] }
	}
}

// startA2AReviewer starts an agent that does its task in a few events.
func startA2AReviewer(t *testing.T) *a2apeer.Peer {
	t.Helper()
	return a2apeer.Start(t, true, func(w http.ResponseWriter, _ a2apeer.Request) {
		a2apeer.Send(w, a2apeer.TaskEvent("1", "SUBMITTED"), a2apeer.StatusEvent("1", "WORKING", "Looking, with "+a2aToken+".\x1b[2J"),
			a2apeer.TextEvent("1", "a", "A is"), a2apeer.TextEvent("1", "a", " safe: "+a2aToken), a2apeer.StatusEvent("1", "COMPLETED", ""))
	})
}

// An agent of A2A that an agent file names is a delegate: it gets the task once, with the credential of the settings, its words
// are the result, and those who watch see how far it is. The credential is in no event.
//
//behaviour:shows H5
func TestA2AAgentIsADelegate(t *testing.T) {
	t.Parallel()
	p, dir, model := startA2AReviewer(t), writeBoss(t, "a2a/reviewer"), writeScript(t, bossScript)
	h := startBossNode(t, dir, nameA2AAgent(p))
	watcher := connectClient(t, h)
	progress := make(chan string, 64)
	stop, err := watcher.Watch(func(e client.Event) {
		if e.Kind == event.KindToolProgress {
			progress <- string(e.Data)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	id, c := askBoss(t, h, client.RunRequest{Prompt: "a2a/reviewer", Agents: dir, Model: model})
	end, info := endOfCall(t, c, id)
	if end.Error || !strings.HasPrefix(end.Text, "A is safe: ") || end.Metrics["cost_unknown"] != 1 || info.Result.CostKnown {
		t.Errorf("%+v %+v", end, info.Result)
	}
	got := p.Requests("SendStreamingMessage")
	if len(got) != 1 || got[0].Task() != "{Review A." || got[0].Header.Get("Authorization") != "Bearer "+a2aToken {
		t.Errorf("%+v", got)
	}
	if n := len(eventsOfKind(t, c, id, event.KindAgentSpawned)); n != 2 { // the other one stands for the agent
		t.Errorf("%d agents were started", n)
	}
	ids, raw := pagedEvents(t, c, id)
	for _, id := range ids {
		if strings.Contains(raw[id], a2aToken) {
			t.Errorf("the credential is in %s", raw[id])
		}
	}
	select {
	case text := <-progress:
		if !strings.Contains(text, "submitted") && !strings.Contains(text, "Looking") || strings.Contains(text, a2aToken) || strings.Contains(text, "\x1b") {
			t.Errorf("progress %q", text)
		}
	case <-testContext(t).Done():
		t.Error("nobody saw that the agent works")
	}
	for _, name := range []string{"a2a/other", "a2a/reviewer/x", "a2a/"} {
		id, c := askBoss(t, h, client.RunRequest{Prompt: name, Agents: dir, Model: model})
		if info, err := c.Wait(testContext(t), id); err != nil || !strings.Contains(info.Result.Detail, "not delegated: there is no agent") || !strings.Contains(info.Result.Detail, "the agents are: a2a/reviewer") {
			t.Errorf("%s: %+v %v", name, info.Result, err)
		}
	}
	if p.Tasks() != 1 {
		t.Errorf("%d tasks were sent", p.Tasks())
	}
}

// The answer of an agent must fit the schema of the delegation: the agent is told it, and is asked again. One that never fits is
// an error.
//
//behaviour:shows H5
func TestA2AAgentAnswersByASchema(t *testing.T) {
	t.Parallel()
	p := a2apeer.Start(t, false, func(w http.ResponseWriter, r a2apeer.Request) {
		answer := `{"message":{"parts":[{"text":"Here:\n` + "```json" + `\n{\"grade\": 1}\n` + "```" + `"}]}}`
		if strings.Contains(r.Task(), "Review B.") {
			answer = `{"message":{"parts":[{"data":{"grade":"A"}}]}}`
		}
		a2apeer.Reply(w, answer)
	})
	dir := writeBoss(t, "a2a/reviewer")
	model := writeScript(t, `
agents:
  boss:
    - calls: [{name: delegate, args: {agent: a2a/reviewer, task: "Review {{task}}.", schema: {type: object, properties: {grade: {type: integer}}, required: [grade]}}}]
    - text: "It said: {{last}}"
`)
	h := startBossNode(t, dir, nameA2AAgent(p))
	for task, want := range map[string]string{"A": `It said: {"grade": 1}`, "B": "missing: a final answer that fits its schema"} {
		id, c := askBoss(t, h, client.RunRequest{Prompt: task, Agents: dir, Model: model})
		if info, err := c.Wait(testContext(t), id); err != nil || !strings.Contains(info.Result.Text+info.Result.Detail, want) {
			t.Errorf("%s: %+v %v", task, info.Result, err)
		}
	}
	got := p.Requests("SendMessage")
	if len(got) < 3 || !strings.Contains(got[0].Task(), `of this schema`) || !strings.Contains(got[0].Task(), `"grade"`) {
		t.Errorf("%+v", got)
	}
}

// How the agent ends is the result of the call, in words that say what is known.
//
//behaviour:shows H5
func TestEndsOfA2AAgents(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		events []string
		want   []string
	}{
		"fails":    {[]string{a2apeer.TaskEvent("1", "WORKING"), a2apeer.TextEvent("1", "a", "A is"), a2apeer.StatusEvent("1", "FAILED", "no disk")}, []string{"[partial: the first 4 bytes", "A is\n", `a2a/fails: the agent reports an error: the task failed: "no disk"`}},
		"rejects":  {[]string{a2apeer.TaskEvent("1", "REJECTED")}, []string{"it rejected the task: it gave no reason"}},
		"stopped":  {[]string{a2apeer.TaskEvent("1", "CANCELED")}, []string{"was canceled where the agent runs, and not by this run"}},
		"wants":    {[]string{a2apeer.TaskEvent("1", "WORKING"), a2apeer.StatusEvent("1", "AUTH_REQUIRED", "Log in.")}, []string{"wants an authorization that nobody gives", `"Log in."`, "(its task was canceled)"}},
		"nonsense": {[]string{`[1,2,3]`}, []string{"not a message of the protocol", "unknown"}},
	}
	var names []string
	peers, agents := map[string]*a2apeer.Peer{}, []a2aclient.Agent{}
	for name, k := range cases {
		peers[name] = a2apeer.Start(t, true, func(w http.ResponseWriter, r a2apeer.Request) {
			if r.Method == "CancelTask" {
				a2apeer.Reply(w, a2apeer.TaskText("1", "CANCELED"))
				return
			}
			a2apeer.Send(w, k.events...)
		})
		names, agents = append(names, "a2a/"+name), append(agents, a2aclient.Agent{Name: name, URL: peers[name].URL})
	}
	dir, model := writeBoss(t, strings.Join(names, ", ")), writeScript(t, bossScript)
	h := startBossNode(t, dir, func(c *Config) { c.A2AAgents = agents })
	for name, k := range cases {
		id, c := askBoss(t, h, client.RunRequest{Prompt: "a2a/" + name, Agents: dir, Model: model})
		end, info := endOfCall(t, c, id)
		for _, want := range k.want {
			if !strings.Contains(end.Text, want) {
				t.Errorf("%s: %.600q lacks %q", name, end.Text, want)
			}
		}
		if !end.Error || info.Result.CostKnown || peers[name].Tasks() != 1 {
			t.Errorf("%s: %+v, %d tasks were sent", name, end, peers[name].Tasks())
		}
	}
}

// A directory names no agents of A2A, a person is asked without a rule, a limit in money needs consent, and a node that does not
// know the agent says so when the run begins.
//
//behaviour:shows H5
func TestA2AAgentsNeedTrust(t *testing.T) {
	t.Parallel()
	p, dir, model := startA2AReviewer(t), writeBoss(t, "a2a/reviewer"), writeScript(t, bossScript)
	h := startBossNode(t, dir, nameA2AAgent(p))
	c := connectClient(t, h)
	r := client.RunRequest{Prompt: "a2a/reviewer", Agent: "boss", Agents: dir, Model: model}
	if info, err := c.Wait(testContext(t), beginRun(t, c, r)); err != nil || !strings.Contains(info.Result.Text+info.Result.Detail, "no rule allows a2a/reviewer") {
		t.Errorf("without a rule: %+v %v", info.Result, err)
	}
	r.AllowedTools, r.MaxBudgetUSD, r.RunID = []string{"delegate(a2a/*)"}, 1, client.NewID()
	if _, err := c.Run(testContext(t), r); err == nil || !strings.Contains(fmt.Sprintf("%+v", err), "whose cost is unknown") {
		t.Errorf("a limit in money that cannot be kept: %v", err)
	}
	r.AllowUnpriced = []string{"a2a/reviewer"}
	if info := waitFinished(t, c, beginRun(t, c, r), spec.Completed); !strings.HasPrefix(info.Result.Text, "It said: A is safe") || p.Tasks() != 1 {
		t.Errorf("with a rule and consent: %+v, %d tasks", info.Result, p.Tasks())
	}
	work := t.TempDir()
	if err := os.MkdirAll(filepath.Join(work, ".troupe"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(work, ".troupe", "agents"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	open := startNode(t, t.TempDir(), nameA2AAgent(p), func(c *Config) { c.Roots, c.Model, c.requestsFromUser = []string{work}, model, false })
	c = connectClient(t, open)
	id := client.NewID()
	a, err := c.Run(testContext(t), client.RunRequest{RunID: id, Prompt: "a2a/reviewer", Agent: "boss", Dir: work, Yes: true})
	if err != nil || !strings.Contains(fmt.Sprint(a.Notes), "agents of other programs") {
		t.Errorf("%+v %v", a, err)
	}
	if info, err := c.Wait(testContext(t), id); err != nil || p.Tasks() != 1 {
		t.Errorf("an agent of a directory: %+v %v, %d tasks", info.Result, err, p.Tasks())
	}
	stranger := connectClient(t, startBossNode(t, dir))
	id = client.NewID()
	a, err = stranger.Run(testContext(t), client.RunRequest{RunID: id, Prompt: "a2a/reviewer", Agent: "boss", Agents: dir, Model: model, Yes: true})
	if err != nil || !strings.Contains(fmt.Sprint(a.Notes), "no a2a_agents of troupe.yaml on this node names a2a/reviewer") {
		t.Errorf("%+v %v", a, err)
	}
	if end, _ := endOfCall(t, stranger, id); !strings.Contains(end.Text, "a2a/reviewer: this node knows no such agent") {
		t.Errorf("%+v", end)
	}
}

// The operator's timeout and the cancel of a run end the call, and the agent is told to cancel its task.
//
//behaviour:shows H5
func TestA2AAgentIsCanceled(t *testing.T) {
	t.Parallel()
	begun := make(chan bool, 4)
	p := a2apeer.Start(t, true, func(w http.ResponseWriter, r a2apeer.Request) {
		if r.Method == "CancelTask" {
			a2apeer.Reply(w, a2apeer.TaskText("1", "CANCELED"))
			return
		}
		a2apeer.Send(w, a2apeer.TaskEvent("1", "WORKING"), a2apeer.TextEvent("1", "a", "A is"))
		begun <- true
		<-t.Context().Done()
	})
	dir, model := writeBoss(t, "a2a/reviewer"), writeScript(t, bossScript)
	h := startBossNode(t, dir, nameA2AAgent(p), func(c *Config) { c.Tools = []agentfile.ToolRule{{Name: "delegate", Timeout: 300 * time.Millisecond}} })
	id, c := askBoss(t, h, client.RunRequest{Prompt: "a2a/reviewer", Agents: dir, Model: model})
	if end, _ := endOfCall(t, c, id); !strings.Contains(end.Text, "A is\ndelegate timed out after 300ms") || !strings.Contains(end.Text, "its task was canceled") || len(p.Requests("CancelTask")) != 1 {
		t.Errorf("timeout: %+v", end)
	}
	<-begun
	h = startBossNode(t, dir, nameA2AAgent(p))
	id, c = askBoss(t, h, client.RunRequest{Prompt: "a2a/reviewer", Agents: dir, Model: model})
	<-begun
	if _, err := c.Cancel(testContext(t), client.CancelRequest{RunID: id, Now: true, Why: "enough"}); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Wait(testContext(t), id); err != nil || info.State != client.RunFinished {
		t.Errorf("%+v %v", info, err)
	}
	if err := h.Close(); err != nil { // which waits for the cancel
		t.Error(err)
	}
	if n := len(p.Requests("CancelTask")); n != 2 || p.Tasks() != 2 {
		t.Errorf("%d cancels and %d tasks were sent", n, p.Tasks())
	}
}

// The task is not sent again when the node dies during the call: a person decides, who reads which agent had it.
//
//behaviour:shows H5
func TestA2AAgentIsNotAskedAgainAfterACrash(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	begun := make(chan bool, 4)
	p := a2apeer.Start(t, false, func(http.ResponseWriter, a2apeer.Request) {
		begun <- true
		<-t.Context().Done()
	})
	dir, model := writeBoss(t, "a2a/reviewer"), writeScript(t, bossScript)
	start := func(name string) *Node {
		return startSharedNodeWith(t, e, name, func(c *Config) {
			c.Roots, c.LeaseTTL, c.IdleTimeout, c.Bus = []string{dir}, shard.TTLMin, 20*time.Millisecond, e.ConnectOptions(bus.RoleNode)
			nameA2AAgent(p)(c)
		})
	}
	first := start("one")
	id, _ := askBoss(t, first, client.RunRequest{Prompt: "a2a/reviewer", Agents: dir, Model: model})
	<-begun
	first.cutNetwork()
	c := connectClient(t, start("two"))
	awaitEvents(t, c, id, event.KindCheckpointResumeUnsafe, 1)
	open, err := c.Questions(testContext(t))
	if err != nil || len(open) != 1 || !strings.Contains(open[0].Question, `delegate to a2a/reviewer with the task "{Review A."`) || !strings.Contains(open[0].Question, "its outcome is unknown") {
		t.Fatalf("%+v %v", open, err)
	}
	if err := c.Answer(testContext(t), client.AnswerRequest{RunID: id, Query: open[0].Query, Decision: spec.TextOnly, Text: "it was reviewed"}); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Wait(testContext(t), id); err != nil || !strings.Contains(info.Result.Text, "it was reviewed") || p.Tasks() != 1 {
		t.Errorf("%+v %v, %d tasks were sent", info.Result, err, p.Tasks())
	}
}
