//go:build unix

package node

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// The metrics of a node have what its events tell together, and the requests to its MCP server.
//
//behaviour:shows I3
func TestMetricsOfWaitsStreamsAndMCP(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	agents := agentFiles(t, "crier", crier, "lead", leader)
	file := serverFile(t, filepath.Join(t.TempDir(), "mcp.json"), map[string]any{"stage": map[string]any{"type": "http", "url": serveMCP(t, newShoutServer("shout"))}})
	h, w := startWeb(t, func(c *Config) { c.Servers, c.Roots = file, []string{agents} })
	c := connectClient(t, h)
	waitFinished(t, c, beginRun(t, c, client.RunRequest{Agents: agents, Agent: "lead", Model: writeScript(t, cries), Yes: true}), spec.Completed)
	waitFinished(t, c, beginRun(t, c, client.RunRequest{Model: writeScript(t, family)}), spec.Completed)
	s, err := connectMCP(t, w, w.token)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(testContext(t), &mcp.CallToolParams{Name: "list_runs", Arguments: map[string]any{}}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.CallTool(testContext(t), &mcp.CallToolParams{Name: "get", Arguments: map[string]any{"run_id": "nothing"}}); err != nil || !r.IsError {
		t.Fatal(err)
	}
	if _, err := s.CallTool(testContext(t), &mcp.CallToolParams{Name: "made_up"}); err == nil {
		t.Error("a tool that does not exist answers")
	}
	_, _, raw := w.send(w.request("GET", "/metrics", ""))
	if strings.Contains(string(raw), "made_up") {
		t.Error("a client puts names into the metrics")
	}
	for _, line := range []string{
		"troupe_delegation_queue_wait_seconds_count 4\n", `troupe_log_append_seconds_count{outcome="ok"}`,
		`mcp_client_operation_duration_seconds_count{error_type="",gen_ai_tool_name="mcp__stage__shout",mcp_method_name="tools/call"} 1`,
		`gen_ai_client_operation_time_to_first_chunk_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="troupe.script",gen_ai_request_model="script"}`,
		`mcp_server_operation_duration_seconds_count{error_type="",gen_ai_tool_name="list_runs",mcp_method_name="tools/call"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="tool_error",gen_ai_tool_name="get",mcp_method_name="tools/call"} 1`,
	} {
		if !strings.Contains(string(raw), line) {
			t.Errorf("the metrics lack %s:\n%s", line, raw)
		}
	}
}
