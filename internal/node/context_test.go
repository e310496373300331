package node

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// TestLayersReachTheAgentsBelow: over HTTP and from Go, layers of the system prompt of a live agent are set. Those that say so reach the
// agents below it, and each agent says which agent a layer came from. A tool that is taken away is gone below, too.
//
//behaviour:shows K5
func TestLayersReachTheAgentsBelow(t *testing.T) {
	t.Parallel()
	_, gate, agents := heldFamily(t)
	script := writeScript(t, `
agents:
  boss:
    - calls:
        - {name: delegate, args: {agent: keeper, task: "first"}}
        - {name: delegate, args: {agent: keeper, task: "second"}}
    - text: "boss: {{system}}\n{{result.0}}\n{{result.1}}"
  keeper:
    - calls: [{name: wait}]
    - calls: [{name: wait}]
    - text: "keeper: {{system}} {{last}}"
`)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: script, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 2) // they wait for the gate
	w.post("/api/v1/runs/"+id+"/context", `{"layers":[{"name":"house","text":"We sell boats.","below":true},{"name":"tone","text":"Be brief."}]}`, http.StatusOK, nil)
	if err := client.SetContext(testContext(t), c, client.ContextRequest{RunID: id, RemoveTools: []string{"wait"}, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	awaitLayers(t, c, id, "root-1-1", "house")
	openGate(t, gate)
	text := waitFinished(t, c, id, spec.Completed).Result.Text
	for _, want := range []string{"boss: Delegate.", "Be brief.", "keeper: Wait.", `unknown tool "wait"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if houses, tones := strings.Count(text, "We sell boats."), strings.Count(text, "Be brief."); houses != 3 || tones != 1 {
		t.Errorf("the layer for all is in %d prompts, that of the root in %d: %q", houses, tones, text)
	}
	origins := map[string]spec.ID{}
	err := c.Events(testContext(t), id, nil, false, func(e client.Event, _ []byte) error {
		for _, l := range client.DataOf[event.ContextChanged](e).Layers {
			if l.Name == "house" {
				origins[e.Agent] = l.Agent
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(origins) != 3 || origins["root"] != "root" || origins["root-1-0"] != "root" || origins["root-1-1"] != "root" {
		t.Errorf("events name %v", origins)
	}
}

// TestChangedContextsAreVerified: a run whose agents get and lose tools and layers while it works, and in which a child begins after
// that, keeps the rules of the logs. If the client's change does not name the tool that the root got, it does not.
func TestChangedContextsAreVerified(t *testing.T) {
	t.Parallel()
	_, gate, agents := heldFamily(t)
	script := writeScript(t, `
agents:
  boss:
    - calls: [{name: delegate, args: {agent: keeper, task: "first"}}]
    - calls: [{name: delegate, args: {agent: keeper, task: "second"}}]
    - text: "boss: {{result.0}} {{result.1}}"
  keeper:
    - calls: [{name: wait}]
    - text: "keeper: {{system}} {{last}}"
    - text: "I could not wait."
`)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: script, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 1) // the first keeper waits for the gate
	for _, r := range []client.ContextRequest{
		{RunID: id, Layers: []spec.Layer{{Name: "house", Text: "We sell boats.", Below: true}, {Name: "tone", Text: "Be brief."}}, AddTools: []string{"http_get"}},
		{RunID: id, RemoveTools: []string{"wait"}, By: "ann"},
	} {
		if err := client.SetContext(testContext(t), c, r); err != nil {
			t.Fatal(err)
		}
	}
	awaitLayers(t, c, id, "root-1-0", "house")
	openGate(t, gate)
	waitFinished(t, c, id, spec.Failed) // the second keeper has lost the tool
	f := dumpRun(t, c, id)
	for _, found := range verify.Logs(f.Entries).Findings {
		t.Error(found)
	}
	for i, m := range f.Entries {
		f.Entries[i].Data = bytes.ReplaceAll(m.Data, []byte("http_get"), []byte("http_put"))
		if m.To.Agent() == mailbox.Super && !bytes.Equal(m.Data, f.Entries[i].Data) {
			break
		}
		f.Entries[i] = m
	}
	if found := verify.Logs(f.Entries).Findings; !slices.ContainsFunc(found, func(f verify.Finding) bool { return f.Rule == verify.Rights }) {
		t.Errorf("a tool that no client has added is not found: %v", found)
	}
}

// awaitLayers waits until the next request of an agent has a layer.
func awaitLayers(t *testing.T, c *client.Client, run, agent, layer string) {
	t.Helper()
	for {
		a, err := client.Context(testContext(t), c, run, agent)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(a.Layers, func(l spec.Layer) bool { return l.Name == layer }) && !slices.Contains(a.Tools, "wait") {
			return
		}
	}
}

// TestAttackRestoredRunAddsATool: the logs of a file add a tool to an agent, which no client could add here, or run a command of the
// forger under the name of one.
func TestAttackRestoredRunAddsATool(t *testing.T) {
	t.Parallel()
	f, dir, agents := askedCommand(t)
	super, root := mailbox.At(f.Header.Run, mailbox.Super), rootAddress(t, f)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, agents} })
	c := connectClient(t, h)
	whole := f.Entries
	added := func(name string, class model.Class) supervisor.ContextSet {
		return supervisor.ContextSet{AddTools: []model.ToolSpec{{Name: name, Class: class, Schema: `{"type":"object"}`}}, By: "ann"}
	}
	for _, forged := range []struct {
		to   mailbox.Address
		fact interface{ Kind() string }
		want string
	}{
		{super, added("telnet", model.Read), "there is no tool"},
		{super, added("http_get", model.Read), "which is another one"},
		{super, added("delegate", model.Read), "is a tool of the loop"},
		{super, added("read_file", model.Effect), "which is another one here"},
		{root, agent.ContextSet{Commands: []spec.Command{{Name: "read_file", Line: "touch forged"}}}, "the tools of the agent in its own log"},
		{root, agent.ContextSet{RemoveTools: []string{"read_file"}}, "the tools of the agent in its own log"},
	} {
		body, err := mailbox.Marshal(forged.fact)
		if err != nil {
			t.Fatal(err)
		}
		data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "forged", Kind: forged.fact.Kind(), Body: body}}})
		if err != nil {
			t.Fatal(err)
		}
		last := whole[len(whole)-1]
		f.Entries = append(slices.Clone(whole), mailbox.Message{To: forged.to, At: last.At, Nanos: last.Nanos, Place: last.Place + 1, Data: data})
		_, err = sendRestore(t, c, f, client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents, Dir: dir}})
		if err == nil || !strings.Contains(err.Error(), forged.want) && !strings.Contains(err.Error(), "no client can do that") {
			t.Errorf("%+v: %v, want %q", forged.fact, err, forged.want)
		}
	}
}
