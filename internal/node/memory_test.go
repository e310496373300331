package node

import (
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/agentmemory"
	"github.com/troupe-run/troupe/supervisor"
)

// offersMemory reports which of the tools of a memory an agent of a run is offered as the root.
func offersMemory(t *testing.T, o supervisor.Opened, name string) (offered []string) {
	t.Helper()
	d := findDefinition(t, o, name)
	for _, s := range o.Tools {
		if slices.Contains(agentmemory.ToolNames(), s.Name) && (d.Offer == nil || slices.Contains(d.Offer, s.Name)) &&
			(d.Tools == nil || slices.Contains(d.Tools, s.Name)) && !slices.Contains(d.Deny, s.Name) {
			offered = append(offered, s.Name)
		}
	}
	return offered
}

// The tools of a memory are offered to the agents whose files ask for one, and to no others, whatever tools they have.
//
//behaviour:shows K8
func TestOnlyAgentsWithMemoryHaveItsTools(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir, agents := t.TempDir(), t.TempDir()
	for name, keys := range map[string]string{"all": "memory: project", "some": "tools: Read\nmemory: local", "none": "tools: []\nmemory: user",
		"shown": "memory: project\npermissionMode: plan", "kept": "memory: project\ndisallowedTools: [memory_delete]",
		"plain": "color: red", "listed": "tools: Read, memory_read, memory_write", "shell": "tools: Bash"} {
		writeText(t, "---\nname: "+name+"\ndescription: d\n"+keys+"\n---\nWork.\n", agents, name+".md")
	}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots, c.Trust = []string{dir}, []string{agents} })
	o, a, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Dir, r.Agents, r.Agent = dir, agents, "all" }))
	if err != nil {
		t.Fatal(err, a.Notes)
	}
	all := agentmemory.ToolNames()
	for name, want := range map[string][]string{"all": all, "some": all, "none": all, "shown": all[:1], "kept": all[:2], "plain": nil, "listed": nil, "shell": nil, "assistant": nil} {
		if name == "assistant" && !slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == name }) {
			continue
		}
		if got := offersMemory(t, o, name); !slices.Equal(got, want) {
			t.Errorf("%s is offered %v, not %v", name, got, want)
		}
		if has := strings.Contains(findDefinition(t, o, name).System, "Your memory:"); has != (want != nil) {
			t.Errorf("%s: its prompt names a memory: %v", name, has)
		}
	}
	if s := findDefinition(t, o, "none").Memory; s != agentmemory.User {
		t.Errorf("scope %q", s)
	}
	o, _, err = h.buildRun(newRequest(func(r *client.RunRequest) {
		r.Dir, r.Agents, r.Agent, r.DisallowedTools = dir, agents, "all", []string{"memory_write", "memory_delete"}
	}))
	if got := offersMemory(t, o, "all"); err != nil || !slices.Equal(got, all[:1]) {
		t.Error(got, err)
	}
	// Without an agent that has memory, a run has none of the tools.
	o, _, err = h.buildRun(newRequest(func(r *client.RunRequest) { r.Dir = dir }))
	if err != nil || slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Memory != "" }) || len(offersMemory(t, o, o.Root)) > 0 {
		t.Error(err)
	}
}

// A command of an agent file cannot take the name of a tool that other agents trust.
func TestNoCommandIsCalledLikeAToolOfTheMemory(t *testing.T) {
	t.Parallel()
	agents := agentFiles(t, "fake", "---\nname: fake\ndescription: d\nx-troupe:\n  tools:\n    - {name: memory_read, description: d, command: cat, input_schema: {type: object}}\n---\np\n")
	h := newBuildOnlyNode(agents)
	if _, _, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Agents, r.Agent = agents, "fake" })); err == nil || !strings.Contains(err.Error(), "memory_read is built in") {
		t.Error(err)
	}
}

// A client that can only send requests must not bring an agent file that a run may have written, and with it the notes
// that the user's agent of that name keeps.
func TestAttackFileOfARootHasNoNotesOfTheUser(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	agents := agentFiles(t, "tester", "---\nname: tester\ndescription: d\nmemory: user\n---\np\n")
	_, ask := startClientNode(t, func(c *Config) { c.Roots = []string{agents} })
	_, err := ask(client.RunRequest{Agents: agents, Agent: "tester"})
	refusedWith(t, err, client.CodeForbidden, "brings notes of the user (memory: user), and the user of this node has not approved it")
}

// A secret that the user wrote into an .env file after a note was made is not in the list of notes that the model reads.
func TestAttackSecretInTheDescriptionOfANote(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	const secret = "sk-live-0123456789abcdef"
	dir, agents, state := t.TempDir(), t.TempDir(), t.TempDir()
	for _, scope := range []string{agentmemory.User, agentmemory.Project} {
		writeText(t, "---\nname: "+scope+"\ndescription: d\nmemory: "+scope+"\n---\nWork.\n", agents, scope+".md")
	}
	h := startNode(t, state, func(c *Config) { c.Roots, c.Trust = []string{dir}, []string{agents} })
	for _, scope := range []string{agentmemory.User, agentmemory.Project} {
		store, err := agentmemory.OpenStore(state, scope, scope, dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Write(agentmemory.Note{Name: "access", Description: "The key is " + secret, Content: "x"}, ""); err != nil {
			t.Fatal(err)
		}
	}
	writeText(t, "API_KEY="+secret+"\n", dir, ".env")
	o, a, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Dir, r.Agents, r.Agent = dir, agents, agentmemory.User }))
	if err != nil {
		t.Fatal(err, a.Notes)
	}
	for _, scope := range []string{agentmemory.User, agentmemory.Project} {
		if system := findDefinition(t, o, scope).System; strings.Contains(system, secret) || !strings.Contains(system, "- access: The key is") {
			t.Errorf("%s: %s", scope, system)
		}
	}
}
