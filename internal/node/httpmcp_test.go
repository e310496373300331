package node

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
)

// withToken adds the token to each request.
type withToken struct {
	token string
	next  http.RoundTripper
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.next.RoundTrip(r)
}

// An MCP client lists, starts, reads and cancels runs, and gives a task to an agent.
func TestMCPClientUsesRunsAndAgents(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, w := startWeb(t, func(c *Config) { c.Model = writeScript(t, "default: [{text: it is 42}]") })
	connect := func(token string) (*mcp.ClientSession, error) { return connectMCP(t, w, token) }
	if _, err := connect("wrong-token-of-some-length"); err == nil {
		t.Error("a client without the token is served")
	}
	s, err := connect(w.token)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tools, err := s.ListTools(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := toolNames(tools.Tools)
	for _, want := range []string{"list_runs", "run", "get", "cancel", "agent_coordinator"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no tool %s: %v", want, names)
		}
	}
	call := func(name string, args map[string]any) (string, bool) {
		t.Helper()
		r, err := s.CallTool(testContext(t), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return textOf(r), r.IsError
	}
	for _, c := range []struct {
		tool   string
		args   map[string]any
		says   string
		failed bool
	}{
		{"agent_coordinator", map[string]any{"task": "what is it?"}, "it is 42", false},
		{"run", map[string]any{"prompt": "what is it?", "wait_seconds": 60}, `"stop_reason":"completed"`, false},
		{"get", map[string]any{"run_id": "last"}, "it is 42", false},
		{"list_runs", map[string]any{"state": "finished"}, `"runs":[{"run_id"`, false},
		{"cancel", map[string]any{"run_id": "nothing"}, "no run", true},
		{"run", map[string]any{"prompt": "x", "agent": "nobody"}, "nobody", true},
		{"run", map[string]any{"prompt": "x", "dir": "/etc"}, "/etc", true},
	} {
		if text, failed := call(c.tool, c.args); failed != c.failed || !strings.Contains(text, c.says) {
			t.Errorf("%s %v: %v %s", c.tool, c.args, failed, text)
		}
	}
}

// connectMCP connects to the MCP server of a node.
func connectMCP(t *testing.T, w webClient, token string) (*mcp.ClientSession, error) {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	return c.Connect(testContext(t), &mcp.StreamableClientTransport{Endpoint: w.url + "/mcp", DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: withToken{token, w.http.Transport}}}, nil)
}

func toolNames(tools []*mcp.Tool) (names []string) {
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

func textOf(r *mcp.CallToolResult) (text string) {
	for _, c := range r.Content {
		if part, ok := c.(*mcp.TextContent); ok {
			text += part.Text
		}
	}
	return text
}

// A model that uses the MCP server of a node starts a run and approves none of its calls: no tool answers, unless the
// operator says so.
//
//behaviour:shows E3
func TestAttackNoModelApprovesThroughMCP(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	for _, allowed := range []bool{false, true} {
		dir, agents := t.TempDir(), writeHandAgents(t)
		h, w := startWeb(t, func(c *Config) { c.Roots, c.HTTP.MCPAnswers = []string{dir, agents}, allowed })
		c := connectClient(t, h)
		id := beginRun(t, c, client.RunRequest{Agent: "hand", Agents: agents, Dir: dir, Model: writeScript(t, twoCommands)})
		q := parkedQuestion(t, c, id)
		s, err := connectMCP(t, w, w.token)
		if err != nil {
			t.Fatal(err)
		}
		tools, err := s.ListTools(testContext(t), nil)
		if err != nil || slices.Contains(toolNames(tools.Tools), "answer") != allowed {
			t.Errorf("the switch is %v: %v, %v", allowed, toolNames(tools.Tools), err)
		}
		r, err := s.CallTool(testContext(t), &mcp.CallToolParams{Name: "answer", Arguments: map[string]any{"run_id": id, "query": q.Query, "decision": "approve"}})
		if did := err == nil && !r.IsError; did != allowed {
			t.Errorf("the switch is %v, and a model has answered: %v", allowed, did)
		}
		if !allowed && (fileExists(t, dir, "first") || parkedQuestion(t, c, id).Query != q.Query) {
			t.Error("the command has run, or its question is closed")
		}
		if allowed {
			waitUntil(t, "the command has run", func() bool { return fileExists(t, dir, "first") })
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The run of an agent's tool ends when the MCP client goes away, also while its model does not answer.
func TestMCPClientThatGoesAwayCancelsItsRun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	m := newGatedModel()
	h, w := startWeb(t, func(c *Config) {
		c.Contributions.Models, c.Model = map[string]model.Client{"own/wait": m}, "own/wait"
	})
	s, err := connectMCP(t, w, w.token)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, leave := context.WithCancel(testContext(t))
	defer leave()
	go func() {
		<-m.begun // the model works
		leave()
	}()
	if r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "agent_coordinator", Arguments: map[string]any{"task": "wait"}}); err == nil {
		t.Fatalf("a call that was given up has a result: %s", textOf(r))
	}
	c := connectClient(t, h)
	list, err := c.List(testContext(t))
	if err != nil || len(list) != 1 {
		t.Fatalf("%d runs, %v", len(list), err)
	}
	if info, err := c.Wait(testContext(t), list[0].RunID); err != nil || event.Subtype(info.Result.Reason) != "error_cancelled" {
		t.Errorf("%v %+v", err, info.Result)
	}
}
