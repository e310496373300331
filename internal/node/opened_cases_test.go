//go:build unix

package node

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/model"
	modelscript "github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// openedNodes are the nodes that the requests of openedCases go to.
var openedNodes = map[string]func(*Config){
	"plain": withEnv("OLLAMA_HOST", "127.0.0.1:1"),                                           // no keys: the built-in model
	"keys":  withEnv("ANTHROPIC_API_KEY", "k", "OPENAI_API_KEY", "k", "GEMINI_API_KEY", "k"), // paid models
	"plays": withEnv("OLLAMA_HOST", "127.0.0.1:1"),                                           // has a run that can be forked
	"prices": func(c *Config) { // the operator's file of prices, and a gateway of models
		withEnv("OPENAI_BASE_URL", "https://gateway.example/v1")(c)
		table, err := catalog.ParseTable([]byte(`{"openai": {"models": {"mine": {"cost": {"input": 1, "output": 2}, "limit": {"context": 9000}}}}}`))
		if err != nil {
			panic(err) // a text of this file
		}
		c.Prices, c.Model = table, "openai/mine"
	},
	"operator": func(c *Config) { // hooks, rules for tools, and the parts of an embedding program
		c.Hooks = []spec.Hook{{Name: "audit", Point: spec.HookStop, Of: spec.OfRoot, Command: "exit 0"}, {Name: "inside", Point: spec.HookPreTool, Tools: "write_file"}}
		c.GoHooks = map[string]hook.Func{"inside": func(context.Context, hook.Call) (spec.HookAnswer, error) { return spec.HookAnswer{}, nil }}
		c.Tools = []agentfile.ToolRule{{Name: "shell", Allow: []string{"make test"}, Deny: []string{"rm:*"}}, {Name: "write_file", Class: model.Irreversible},
			{Name: "http_get", Allow: []string{"example.com"}}, {Name: "stock", Poll: true}}
		c.Contributions = Contributions{Tools: []tool.Tool{tool.Func("stock", "How many pieces there are.", model.Read, func(context.Context, struct{ Name string }) (int, error) { return 12, nil })},
			Agents: []agentfile.Definition{{Name: "clerk", Description: "Decides what to order.", Prompt: "Have 20 pieces of each article."}},
			Models: map[string]model.Client{"script/own": (&modelscript.Script{}).Client("")}}
		c.Model = "script/own"
	},
}

// openedCases are requests that together set every field that a request has, and
// those that are refused.
var openedCases = []openedCase{
	{"defaults", "plain", func(*testing.T, openedInputs, *client.RunRequest) {}},
	{"directory", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) { r.Dir = in.dir }},
	{"writes-allowed", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) { r.Dir, r.Yes = in.dir, true }},
	{"scripted-model", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.Model = in.dir, "script/"+filepath.Join(in.dir, "script.yaml")
	}},
	{"without-instructions", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.Model, r.NoAgentsMD = in.dir, "script/"+filepath.Join(in.dir, "script.yaml"), true
	}},
	{"interactive", "keys", func(_ *testing.T, in openedInputs, r *client.RunRequest) { r.Dir, r.Interactive = in.dir, true }},
	{"limits", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) {
		r.MaxTurns, r.MaxTokens, r.MaxBudgetUSD, r.MaxToolCalls = 7, 50_000, 0.25, 9
		r.MaxDepth, r.MaxChildren, r.MaxAgents, r.MaxMessages, r.TimeoutMS = 2, 3, 4, 5, 60_000
		r.MaxBacklog, r.BacklogLease = 6, 90_000
	}},
	{"caller-and-goal", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) {
		r.Caller, r.Conversation, r.Trace = "ada", "talk-1", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		r.Constraints, r.Criteria, r.FailureConditions = []string{"read only"}, []string{"names a winner"}, []string{"a test fails"}
	}},
	{"policy", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) {
		r.Policy = &supervisor.Policy{Version: 2, Rules: []supervisor.Rule{{Name: "why-first", On: "stop", Why: "Say why.",
			When: []supervisor.Condition{{Fact: "answer", Op: "lacks", Text: "because"}, {Fact: "turns", Op: "<", Number: 4}}}}}
	}},
	{"required-of-the-answer", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.RequireTool, r.UseTokens = in.dir, []string{"read_file", "grep=A"}, 9_000
		r.JSONSchema = json.RawMessage(`{"type":"object","properties":{"pieces":{"type":"integer"}},"required":["pieces"]}`)
	}},
	{"guardrails", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.Guardrails = in.dir, []spec.ReadyGuardrail{{Name: "injection", Action: "end", Severity: "critical"}, {Name: "size", Bytes: 9_000}}
	}},
	{"loop-options", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) {
		r.Fallback = []string{"ollama/small"}
		r.LoopOptions = &spec.LoopOptions{ToolRetries: spec.Off, AskPeople: true, Journal: true, PatienceMS: 60_000,
			Context: spec.Context{Percent: 50, Tail: 4, PruneTail: 2, Within: 5, Summary: 300, Model: &spec.Model{Name: "builtin/scout"}},
			Watch:   spec.Watch{Of: 9, Identical: 4, Pattern: 5, Stuck: 4, Polling: []string{"wait"}},
			Breaker: spec.Breaker{Failures: 5, Forbidden: 4}, Continue: spec.Continue{Tokens: 1, Percent: 80, Small: 100, Rounds: 2},
			Require: spec.Require{Tries: 4, Evidence: []spec.Evidence{{Tool: "delegate"}}}}
	}},
	{"limits-of-agents", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) {
		r.AgentLimits = client.AgentLimits{MaxOutputTokens: 9000, ClosingTokens: 900, MaxAgentToolCalls: 30, MaxAgentTokens: 50_000, MaxAgentBudgetUSD: 0.125, MaxReplyCalls: 20,
			MaxParallelTools: 2, MaxRetries: spec.Off, MaxMalformed: 5, MaxCuts: 4, MaxVetoes: 3}
		r.ToolRetries, r.PatienceMS = 1, 30_000
	}},
	{"allowed-tools", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.AllowedTools = in.dir, []string{"Read", "Grep", "Bash(git log:*)", "http_get", "TodoWrite"}
	}},
	{"permissions", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.PermissionMode, r.Approvals, r.QuestionTimeout, r.ParkTimeout, r.AskTools = in.dir, "dont-ask", 2, 60_000, 90_000, []string{"Bash(git push:*)", "Read(./secrets/**)"}
		r.Taint, r.TaintFiles, r.Outside = "ask", true, true
	}},
	{"disallowed-tools", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.Unattended, r.DisallowedTools = in.dir, true, []string{"Write", "Edit", "Bash(rm:*)"}
	}},
	{"agent-of-the-directory", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) { r.Dir, r.Agent = in.dir, "reader" }},
	{"agent-files", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.Agents, r.Agent = in.dir, in.agents, "lead"
	}},
	{"plan", "plain", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.Agent, r.Prompt = in.dir, "chain", "reader: read it\nreader: judge {{last}}"
	}},
	{"mcp-servers", "plain", func(t *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.Agents, r.Agent = in.dir, in.agents, "crier"
		r.MCPConfig = serverFile(t, filepath.Join(in.agents, "mcp.json"), map[string]any{
			"stage": map[string]any{"command": os.Args[0], "env": map[string]string{partVar: os.DevNull}, "timeout": 9_000},
			"gone":  map[string]any{"command": "/nowhere/server"}, "off": map[string]any{"command": "x", "disabled": true}})
	}},
	{"paid-default", "keys", func(_ *testing.T, _ openedInputs, _ *client.RunRequest) {}},
	{"paid-wishes", "keys", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		cool := 0.2
		r.Dir, r.Model, r.Temperature, r.Effort = in.dir, "anthropic/claude-opus-5-5", &cool, "high"
	}},
	{"paid-tokens", "keys", func(_ *testing.T, _ openedInputs, r *client.RunRequest) { r.MaxTokens = 20_000 }},
	{"paid-tokens-of-the-directory", "keys", func(_ *testing.T, _ openedInputs, r *client.RunRequest) {
		r.MaxTokens, r.PaidLimit = 20_000, true
	}},
	{"paid-fallbacks", "keys", func(_ *testing.T, _ openedInputs, r *client.RunRequest) {
		r.Model, r.Fallback, r.MaxBudgetUSD = "anthropic/claude-opus-5-5", []string{"openai/gpt-6-sol", "gemini/gemini-3.8-flash", "builtin/scout"}, 0.5
	}},
	{"paid-agent-files", "keys", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.Agents, r.Agent = in.dir, in.agents, "critic"
	}},
	{"unpriced", "keys", func(_ *testing.T, _ openedInputs, r *client.RunRequest) {
		r.Model, r.MaxBudgetUSD, r.AllowUnpriced = "openai/nobody-knows", 1, []string{"openai/nobody-knows"}
	}},
	{"attachments", "keys", func(t *testing.T, in openedInputs, r *client.RunRequest) {
		r.Model, r.AllowUnbounded = "anthropic/claude-opus-5-5", []string{"anthropic/claude-opus-5-5"}
		r.Attach = []client.Attachment{attachGolden(t, in, r.RunID, "cat.png", model.PNG, encodePNG(t, 30, 20)),
			attachGolden(t, in, r.RunID, "a.pdf", model.PDF, []byte("%PDF-1.7 and so on"))}
	}},
	{"price-file", "prices", func(_ *testing.T, _ openedInputs, r *client.RunRequest) { r.MaxBudgetUSD = 1 }},
	{"operator", "operator", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Dir, r.Agent = in.dir, "clerk"
	}},
	{"embedded", "operator", func(_ *testing.T, _ openedInputs, r *client.RunRequest) { // as examples/embed
		r.Agent, r.Prompt = "clerk", "Do we need bolts?"
		r.JSONSchema = json.RawMessage(`{"type":"object","properties":{"Pieces":{"type":"integer"}},"required":["Pieces"]}`)
	}},
	{"fork", "plays", func(_ *testing.T, in openedInputs, r *client.RunRequest) {
		r.Model, r.Fork = "script/"+filepath.Join(in.dir, "script.yaml"), in.past+"@1"
	}},
	{"history", "plays", func(t *testing.T, in openedInputs, r *client.RunRequest) {
		past, err := in.client.Recall(testContext(t), r.RunID, history.Transcript{Messages: []model.Message{{Role: model.User, Text: "What is B?"}, {Role: model.Assistant, Text: "B is faster."}}})
		if err != nil {
			t.Fatal(err)
		}
		r.Model, r.History = "script/"+filepath.Join(in.dir, "script.yaml"), &past
	}},
	{"priority", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) { r.Priority = "low" }},
	{"refused-prompt", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) { r.Prompt = " " }},
	{"refused-agent", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) { r.Agent = "nobody" }},
	{"refused-directory", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) { r.Dir = "/" }},
	{"refused-limit", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) { r.MaxTurns = -1 }},
	{"refused-priority", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) { r.Priority = "urgent" }},
	{"refused-model", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) { r.Model = "openai/gpt" }},
	{"refused-policy", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) {
		r.Policy = &supervisor.Policy{Rules: []supervisor.Rule{{Name: "x", On: "lunch", Why: "y"}}}
	}},
	{"refused-evidence", "plain", func(_ *testing.T, _ openedInputs, r *client.RunRequest) { r.RequireTool = []string{"grepp"} }},
	{"refused-unpriced", "keys", func(_ *testing.T, _ openedInputs, r *client.RunRequest) {
		r.Model, r.MaxBudgetUSD = "openai/nobody-knows", 1
	}},
	{"refused-attachment", "keys", func(t *testing.T, in openedInputs, r *client.RunRequest) {
		r.Model = "anthropic/claude-opus-5-5"
		r.Attach = []client.Attachment{attachGolden(t, in, r.RunID, "a.pdf", model.PDF, []byte("%PDF-1.7 and so on"))}
	}},
}

func attachGolden(t *testing.T, in openedInputs, run, name, kind string, data []byte) client.Attachment {
	t.Helper()
	a, err := in.client.Attach(testContext(t), run, name, kind, data)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
