package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// powerful are the entrances through tools that reach beyond the directory. The name of an
// MCP server's header does not reveal a secret: its file does.
var powerful = []string{"shell-output", "page", "mcp-result", "mcp-error", "mcp-header"}

// startLeakyMCP is an MCP server that leaks secrets.
func startLeakyMCP(t *testing.T, header *string) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "stage", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&sdk.Tool{Name: "tell", Description: "tells", InputSchema: schema}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: leakPayload("mcp-result") + " mark-mcp-header " + *header}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "fail", Description: "fails", InputSchema: schema}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("%s", leakPayload("mcp-error"))
	})
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		*header = r.Header.Get("X-Tracker")
		return s
	}, nil))
	t.Cleanup(func() { // without waiting for clients: they end with their node
		if err := h.Listener.Close(); err != nil {
			t.Error(err)
		}
		h.CloseClientConnections()
	})
	return h.URL
}

// TestNoSecretLeavesRestrictedTools does the same for shell, http_get and MCP servers.
func TestNoSecretLeavesRestrictedTools(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, leakPayload("page")) }))
	defer page.Close()
	const tracker = "tr4cker-0123456789-abcdef"
	header, dir, state := "", t.TempDir(), t.TempDir()
	writeText(t, leakPayload("shell-output"), dir, "said.txt")
	agents := agentFiles(t, "hand", "---\nname: hand\ndescription: d\ntools: Bash, WebFetch, mcp__stage__tell, mcp__stage__fail\n---\nhand\n")
	file := serverFile(t, filepath.Join(t.TempDir(), "mcp.json"), map[string]any{"stage": map[string]any{"type": "http", "url": startLeakyMCP(t, &header),
		"headers": map[string]string{"X-Tracker": "Bearer ${TRACKER}"}}})
	play := writeScript(t, `
agents:
  hand:
    - calls: [{name: shell, args: {command: "cat said.txt"}}, {name: http_get, args: {url: "`+page.URL+`"}}, {name: mcp__stage__tell, args: {}}, {name: mcp__stage__fail, args: {}}]
    - text: "[done] done {{last}}"
`)
	host := strings.TrimPrefix(page.URL, "http://")
	var events, said lockedBuffer
	h := startNode(t, state, func(c *Config) {
		c.Roots, c.Servers = []string{dir, agents}, file
		c.Tools = []agentfile.ToolRule{{Name: "shell", Allow: []string{"*"}}, {Name: "http_get", Allow: []string{host}, Private: []string{host}}}
		c.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
		for _, door := range powerful[:4] {
			c.Environ = append(c.Environ, strings.ToUpper(strings.ReplaceAll(door, "-", "_"))+"_TOKEN="+canarySecret(door))
		}
		c.Env = func(name string) string { return map[string]string{"TRACKER": tracker}[name] }
	})
	if _, err := connectRole(t, h, bus.RoleObserver).Subscribe("troupe.evt.>", func(m *nats.Msg) { _, _ = events.Write(m.Data) }); err != nil {
		t.Fatal(err)
	}
	c := connectClient(t, h)
	run := beginRun(t, c, client.RunRequest{Prompt: "p", Agents: agents, Agent: "hand", Dir: dir, Model: play, Yes: true})
	info := waitFinished(t, c, run, spec.Completed)
	exits := map[string][]byte{"answers": clientAnswers(t, c, run, info)}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	exits["events"], exits["log"], exits["store"] = events.copyBytes(), said.copyBytes(), readTree(t, state)
	if header != "Bearer "+tracker {
		t.Errorf("the server was sent %q", header)
	}
	looks := 0
	for exit, data := range exits {
		for _, door := range powerful {
			if (exit == "answers" || exit == "store") && !bytes.Contains(data, []byte("mark-"+door)) {
				t.Errorf("%s: what came in by %s cannot be found, so the look for its secret says nothing", exit, door)
			}
			for name, form := range encodedForms(canarySecret(door)) {
				if looks++; bytes.Contains(data, []byte(form)) {
					t.Errorf("%s: the secret that came in by %s is there, %s", exit, door, name)
				}
			}
		}
		if looks++; bytes.Contains(data, []byte(tracker)) {
			t.Errorf("%s: what the header's variable holds is there", exit)
		}
	}
	t.Logf("%d doors, %d exits: %d looks, 0 secrets found, or this test fails", len(powerful), len(exits), looks)
	_ = os.Remove(filepath.Join(dir, "said.txt"))
}
