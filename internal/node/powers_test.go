package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/approval"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/toolset/shell"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// writeHandAgents are an agent that names the shell, one that names nothing, and one that
// has only a tool for reading.
func writeHandAgents(t *testing.T) (agents string) {
	agents = t.TempDir()
	writeText(t, "---\nname: hand\ndescription: d\ntools: Bash(echo:*), Read\n---\nx\n", agents, "hand.md")
	writeText(t, "---\nname: free\ndescription: d\n---\nx\n", agents, "free.md")
	writeText(t, "---\nname: eye\ndescription: d\ntools: Read\n---\nx\n", agents, "eye.md")
	return agents
}

// Shell and http_get are there only where a definition, the request or the
// operator names them; then only those have them who are meant (C2).
//
//behaviour:shows C2
func TestRestrictedToolMustBeGranted(t *testing.T) {
	t.Parallel()
	dir, agents := t.TempDir(), writeHandAgents(t)
	roots := func(c *Config) { c.Roots = []string{dir, agents} }
	build := func(change func(*client.RunRequest), more ...func(*Config)) supervisor.Opened {
		t.Helper()
		o, _, err := newBuildOnlyNode(dir, append(more, roots)...).buildRun(newRequest(func(r *client.RunRequest) { r.Dir = dir; change(r) }))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	has := func(o supervisor.Opened, name string) bool { return toolset.IndexTool(o.Tools, name) >= 0 }
	offered := func(d supervisor.Definition, name string) bool {
		return (d.Tools == nil || slices.Contains(d.Tools, name)) && (d.Offer == nil || slices.Contains(d.Offer, name))
	}
	if o := build(func(*client.RunRequest) {}); has(o, "shell") || has(o, "http_get") || !has(o, "edit_file") {
		t.Errorf("%+v", o.Tools)
	}
	o := build(func(r *client.RunRequest) { r.Agents = agents })
	if !has(o, "shell") || has(o, "http_get") || !offered(findDefinition(t, o, "hand"), "shell") || offered(findDefinition(t, o, "free"), "shell") ||
		!offered(findDefinition(t, o, "free"), "grep") || offered(findDefinition(t, o, "eye"), "shell") {
		t.Errorf("%+v", o.Definitions)
	}
	_, a, err := newBuildOnlyNode(dir, roots).buildRun(newRequest(func(r *client.RunRequest) { r.Agents, r.Agent = agents, "hand" }))
	if note := "hand names shell, read_file, which it does not have here: give the run a directory with --dir"; err != nil || !slices.Contains(a.Notes, note) {
		t.Errorf("%v %v", a.Notes, err)
	}
	o = build(func(r *client.RunRequest) {
		r.Agents, r.AllowedTools = agents, []string{"Bash(ls:*)", "WebFetch", "Read"}
	})
	if !has(o, "shell") || !has(o, "http_get") || !offered(findDefinition(t, o, "free"), "shell") || has(o, "grep") {
		t.Errorf("%+v", o.Tools)
	}
	rule := func(c *Config) { c.Tools = []agentfile.ToolRule{{Name: "http_get", Allow: []string{"example.com"}}} }
	if o := build(func(*client.RunRequest) {}, rule); has(o, "shell") || !has(o, "http_get") {
		t.Errorf("%+v", o.Tools)
	}
	if o := build(func(r *client.RunRequest) { r.Agents, r.Dir = agents, "" }); has(o, "shell") {
		t.Error("a shell without a directory")
	}
}

// permissionsOf are the permissions of a definition in its run.
func permissionsOf(t *testing.T, o supervisor.Opened, name string) spec.Permissions {
	t.Helper()
	return permission.Merge(*o.Permissions, findDefinition(t, o, name).Permissions)
}

// ruleTexts are the rules without their places.
func ruleTexts(rules []spec.PermissionRule) (texts []string) {
	for _, r := range rules {
		texts = append(texts, r.Text)
	}
	return texts
}

// Rules come from the request, the operator and agent files of --agents; a file of the
// working directory adds none, and its settings allow nothing.
//
//behaviour:shows C2
func TestWorkingDirectoryCannotGrantTools(t *testing.T) {
	t.Parallel()
	dir, agents := t.TempDir(), writeHandAgents(t)
	writeText(t, "---\nname: local\ndescription: d\ntools: Bash(rm:*)\n---\nx\n", dir, ".claude", "agents", "local.md")
	writeText(t, "tools: {shell: {allow: [\"*\"], read: [/]}}\n", dir, "troupe.yaml")
	h := newBuildOnlyNode(dir, func(c *Config) {
		c.Roots = []string{dir, agents}
		c.Tools = []agentfile.ToolRule{{Name: "shell", Allow: []string{"make test"}}, {Name: "write_file", Class: model.Irreversible}}
	})
	o, a, err := h.buildRun(newRequest(func(r *client.RunRequest) {
		r.Dir, r.Agents, r.Agent, r.Yes = dir, agents, "local", true
	}))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{"hand": {"shell(make test)", "shell(echo:*)"}, "local": {"shell(make test)"}, "free": {"shell(make test)"}} {
		p := permissionsOf(t, o, name)
		if !slices.Equal(ruleTexts(p.Allow), want) || !p.Yes {
			t.Errorf("%s: %+v", name, p)
		}
		set := permission.Compile([]spec.Permissions{p}, dir, nil)
		if v := set.Decide(permission.Call{Tool: "write_file", Args: `{"path":"x"}`}, permission.Tool{Class: model.Irreversible}, nil); v.Decision != permission.Ask {
			t.Errorf("%s: an irreversible tool is not asked about: %+v", name, v)
		}
	}
	notes := strings.Join(a.Notes, "\n")
	for _, want := range []string{"ignored: its rules for shell", "ignored: what it allows shell; only the user's own troupe.yaml can allow it"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q in\n%s", want, notes)
		}
	}
}

const shellScript = `
agents:
  hand:
    - calls: [{name: shell, args: {command: %q}}]
    - text: "[done] {{last}}"
`

// runShellCommand runs one command as agent hand, and answers for a person if one is asked.
func runShellCommand(t *testing.T, command string, answer spec.Decision, change func(*client.RunRequest), more ...func(*Config)) (text string, asked bool) {
	t.Helper()
	dir, agents := t.TempDir(), writeHandAgents(t)
	h := startNode(t, t.TempDir(), append(more, func(c *Config) { c.Roots = []string{dir, agents} })...)
	c := connectClient(t, h)
	r := client.RunRequest{Agent: "hand", Agents: agents, Dir: dir, Model: writeScript(t, fmt.Sprintf(shellScript, command))}
	change(&r)
	id := beginRun(t, c, r)
	info, err := c.Wait(testContext(t), id)
	if err != nil {
		t.Fatal(err)
	}
	if info.State != client.RunFinished {
		asked = true
		open, err := c.Questions(testContext(t))
		if err != nil || len(open) != 1 {
			t.Fatalf("%+v %v", open, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
			t.Error("it ran before a person agreed")
		}
		if err := c.Answer(testContext(t), client.AnswerRequest{RunID: id, Agent: open[0].Agent, Query: open[0].Query, Decision: answer}); err != nil {
			t.Fatal(err)
		}
		awaitEvents(t, c, id, event.KindRunFinished, 1)
	}
	info = waitFinished(t, c, id, spec.Completed)
	_, err = os.Stat(filepath.Join(dir, "made"))
	return fmt.Sprintf("%s made=%v", strings.TrimSpace(strings.TrimPrefix(info.Result.Text, "[done] ")), err == nil), asked
}

// A command waits for approval, unless a rule matches it or --yes was given and the sandbox
// confines it; a command that was made irreversible always waits (T6, C2).
//
//behaviour:shows C2
func TestACommandWaitsForAPersonUnlessItIsAllowed(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	yes := func(r *client.RunRequest) { r.Yes = true }
	none := func(*client.RunRequest) {}
	final := func(c *Config) { c.Tools = []agentfile.ToolRule{{Name: "shell", Class: model.Irreversible}} }
	operator := func(c *Config) { c.Tools = []agentfile.ToolRule{{Name: "shell", Allow: []string{"touch made"}}} }
	for _, c := range []struct {
		what, command string
		answer        spec.Decision
		change        func(*client.RunRequest)
		more          []func(*Config)
		want          string
		asked         bool
	}{
		{"approved", "touch made; echo done", "approve", none, nil, "done made=true", true},
		{"denied", "touch made", "deny", none, nil, "denied by a person made=false", true},
		{"a rule", "echo hi", "", none, nil, "hi made=false", false},
		{"a rule that does not fit", "echo hi; touch made", "deny", none, nil, "denied by a person made=false", true},
		{"the operator's rule", "touch made", "", none, []func(*Config){operator}, "[exit code 0, and it printed nothing] made=true", false},
		{"yes", "touch made; echo done", "", yes, nil, "done made=true", approval.MissingProtections(t.Context()) != ""},
		{"irreversible", "echo hi", "deny", yes, []func(*Config){final}, "denied by a person made=false", true},
		{"too long to be shown", "echo " + strings.Repeat("x", approval.QuestionBytesMax) + "; touch made", "", none, nil, "denied by hook permission: a person must agree to it, and it is too long to be shown", false},
	} {
		answer := c.answer
		if answer == "" {
			answer = "approve"
		}
		if got, asked := runShellCommand(t, c.command, answer, c.change, c.more...); !strings.HasPrefix(got, c.want) || asked != c.asked {
			t.Errorf("%s: %q, asked %v", c.what, got, asked)
		}
	}
}

// A whole run reads a page if the operator allows the host and excepts its address;
// otherwise it learns whom to ask.
func TestARunReadsThePagesThatTheOperatorAllows(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "the page") }))
	t.Cleanup(s.Close)
	host := s.Listener.Addr().String()
	agents := t.TempDir()
	writeText(t, "---\nname: reader\ndescription: d\ntools: WebFetch\n---\nx\n", agents, "reader.md")
	text := fmt.Sprintf("agents:\n  reader:\n    - calls: [{name: http_get, args: {url: %q}}]\n    - text: \"{{last}}\"\n", s.URL)
	for _, c := range []struct {
		rule agentfile.ToolRule
		want string
	}{
		{agentfile.ToolRule{Name: "http_get", Allow: []string{host}, Private: []string{host}}, "the page"},
		{agentfile.ToolRule{Name: "http_get", Allow: []string{host}}, "private network"},
		{agentfile.ToolRule{Name: "grep"}, "is not allowed; the operator allows hosts with `tools: {http_get: {allow: [HOST]}}`"},
	} {
		h := startNode(t, t.TempDir(), func(cfg *Config) { cfg.Roots, cfg.Tools = []string{agents}, []agentfile.ToolRule{c.rule} })
		id := beginRun(t, connectClient(t, h), client.RunRequest{Agent: "reader", Agents: agents, Model: writeScript(t, text)})
		if info := waitFinished(t, connectClient(t, h), id, spec.Completed); !strings.Contains(info.Result.Text, c.want) {
			t.Errorf("%+v: %s", c.rule, info.Result.Text)
		}
	}
	_, err := Start(t.Context(), Config{StartServer: embedded.StartServer, StateDir: t.TempDir(), Tools: []agentfile.ToolRule{{Name: "http_get", Allow: []string{"https://x/"}}}})
	if err == nil || !strings.Contains(err.Error(), `host "https://x/"`) {
		t.Error(err)
	}
}

// Values in the .env file of a directory are masked, whichever tool prints them (T12).
func TestCommandOutputMasksTheEnvFile(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir, agents := t.TempDir(), writeHandAgents(t)
	writeText(t, "API_KEY=correct-horse-battery-staple\n", dir, ".env")
	h := startNode(t, t.TempDir(), func(c *Config) {
		c.Roots, c.Tools = []string{dir, agents}, []agentfile.ToolRule{{Name: "shell", Allow: []string{"*"}}}
	})
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Agent: "hand", Agents: agents, Dir: dir, Model: writeScript(t, fmt.Sprintf(shellScript, "cut -d= -f2 .env"))})
	if info := waitFinished(t, c, id, spec.Completed); info.Result.Text != "[done] [masked]\n" {
		t.Errorf("%q", info.Result.Text)
	}
}

// TestAttackRunPlantsNoHookUnlessTheOperatorOpensGit goes through the setting tools.shell.git.
func TestAttackRunPlantsNoHookUnlessTheOperatorOpensGit(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	for _, open := range []bool{false, true} {
		dir, agents := t.TempDir(), writeHandAgents(t)
		writeText(t, "[core]\n", dir, ".git", "config")
		rules := t.TempDir()
		writeText(t, fmt.Sprintf("tools: {shell: {allow: [\"*\"], git: %t}}\n", open), rules, "troupe.yaml")
		shared, err := agentfile.LoadShared(filepath.Join(rules, "troupe.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		h := startNode(t, t.TempDir(), func(c *Config) { c.Roots, c.Tools = []string{dir, agents}, shared.Tools })
		c := connectClient(t, h)
		id := beginRun(t, c, client.RunRequest{Agent: "hand", Agents: agents, Dir: dir, Model: writeScript(t, fmt.Sprintf(shellScript, "echo hooksPath=x >>.git/config; :"))})
		info := waitFinished(t, c, id, spec.Completed)
		text, err := os.ReadFile(filepath.Join(dir, ".git", "config"))
		if err != nil {
			t.Fatal(err)
		}
		if planted := strings.Contains(string(text), "hooksPath"); planted != open && (open || !strings.Contains(info.Result.Text, "git (")) {
			t.Errorf("open: %t, written: %t, and the result says %s", open, planted, info.Result.Text)
		}
	}
}

// A part of a tool is never more than it says: the rest is asked about or denied, and a part of which nothing is
// known is refused.
func TestPartialToolGrantIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o, _, err := newBuildOnlyNode(dir).buildRun(newRequest(func(r *client.RunRequest) {
		r.Dir, r.AllowedTools = dir, []string{"Read(src/**)", "Write(docs/**)", "Bash(git log:*)"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	set := permission.Compile([]spec.Permissions{*o.Permissions}, dir, o.Writable)
	for call, want := range map[permission.Call]permission.Decision{
		{Tool: "read_file", Args: `{"path":"src/a"}`}: permission.Allow, {Tool: "read_file", Args: `{"path":"b"}`}: permission.Deny,
		{Tool: "write_file", Args: `{"path":"docs/a"}`}: permission.Allow, {Tool: "write_file", Args: `{"path":"b"}`}: permission.Ask,
	} {
		if got := set.Decide(call, permission.Tool{Class: model.Read}, nil); got.Decision != want {
			t.Errorf("%+v: %+v", call, got)
		}
	}
	for _, words := range [][]string{{"Grep", "mcp__a__b(x)"}, {"Bash(git * push)"}} {
		if _, _, err := newBuildOnlyNode(dir).buildRun(newRequest(func(r *client.RunRequest) { r.Dir, r.AllowedTools = dir, words })); err == nil || !strings.Contains(err.Error(), "not a permission rule") {
			t.Errorf("%v: %v", words, err)
		}
	}
}

// A client that may send requests cannot run commands without a sandbox by rules of its
// own.
func TestAttackRequestCannotAllowItsOwnCommandsWithoutASandbox(t *testing.T) {
	t.Parallel()
	dir, agents := t.TempDir(), t.TempDir()
	writeText(t, "---\nname: hand\ndescription: d\ntools: Bash\n---\nx\n", agents, "hand.md")
	o, _, err := newBuildOnlyNode(dir, func(c *Config) { c.Roots = []string{dir, agents} }).buildRun(newRequest(func(r *client.RunRequest) {
		r.Dir, r.Agents, r.Agent, r.AllowedTools = dir, agents, "hand", []string{"shell(*)"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	v := permission.Compile([]spec.Permissions{permissionsOf(t, o, o.Root)}, dir, nil).Decide(permission.Call{Tool: shell.Name, Args: `{"command":"touch made"}`}, permission.Tool{Class: model.Effect}, nil)
	if v.Decision != permission.AllowConfined {
		t.Fatalf("%+v", v)
	}
	rules, err := json.Marshal(spec.PermissionQuery{Why: v.Why, Confined: true})
	if err != nil {
		t.Fatal(err)
	}
	for missing, want := range map[string]spec.HookDecision{"": "", "files": spec.HookAsk} {
		c := hook.Call{Hook: spec.Hook{Name: spec.PermissionHook, Rules: string(rules)}, Data: spec.HookData{Tool: shell.Name, Args: `{"command":"touch made"}`}}
		a, err := approval.PrepareWithProtections(t.Context(), c, func(context.Context) string { return missing })
		if err != nil || a.Decision != want {
			t.Errorf("missing %q: %q %v", missing, a.Decision, err)
		}
	}
}

// A tool that is misspelled where it is taken away would be there without a word. A server may be down.
func TestUnknownToolIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	_, notes := buildOpened(t, h, client.RunRequest{Dir: dir, DisallowedTools: []string{"Read", "WebFetch", "mcp__none"}})
	if !slices.Equal(notes, []string{`no tool is called "mcp__none"`}) {
		t.Errorf("%q", notes)
	}
	for _, r := range []client.RunRequest{{AllowedTools: []string{"Bahs"}}, {DisallowedTools: []string{"Bahs"}}} {
		r.RunID, r.Prompt, r.Dir = client.NewID(), "p", dir
		if _, _, err := h.buildRun(r); err == nil || !strings.Contains(err.Error(), `no tool is called "Bahs"; did you mean bash?`) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
