package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client of MCP that starts `troupe mcp serve` gets runs and the user's exported agents as tools, and they work in the
// directory that the command names.
func TestAnMCPClientStartsTheServer(t *testing.T) {
	t.Parallel()
	h := newTestHome(t, map[string]string{
		"config/troupe/agents/writer.md": "---\nname: writer\ndescription: Writes.\ntools: Write\nx-troupe: {export: true}\n---\nWrite.\n",
		"config/troupe/agents/inner.md":  "---\nname: inner\ndescription: Is not exported.\n---\nWork.\n",
		"config/troupe/troupe.yaml":      "permissions:\n  allow: [Write]\n",
		"work/note.md":                   "old\n",
		"work.yaml": `
default:
  - calls: [{name: write_file, args: {path: note.md, content: "new\n"}}]
  - text: the note is written
`})
	cmd := h.command(documentedServer(t, filepath.Join(h.home, "work"))...)
	cmd.Env = append(cmd.Env, "TROUPE_MODEL=script/"+filepath.Join(h.home, "work.yaml"))
	cmd.Stderr = os.Stderr
	c, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	list := strings.Join(names, " ")
	for _, want := range []string{"list_runs", "run", "get", "cancel", "agent_coordinator", "agent_writer"} {
		if !strings.Contains(" "+list+" ", " "+want+" ") {
			t.Errorf("no tool %s in %s", want, list)
		}
	}
	for _, hidden := range []string{"agent_inner", "answer"} {
		if strings.Contains(" "+list+" ", " "+hidden+" ") {
			t.Errorf("the tool %s is offered", hidden)
		}
	}
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "agent_writer", Arguments: map[string]any{"task": "write the note"}})
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := r.Content[0].(*mcp.TextContent); !ok || r.IsError || text.Text != "the note is written" {
		t.Errorf("the agent's tool returned %+v, %+v", r, r.Content[0])
	}
	if b, err := os.ReadFile(filepath.Join(h.home, "work/note.md")); err != nil || string(b) != "new\n" {
		t.Errorf("note.md is %q, %v", b, err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// documentedServer returns the arguments with which a client of docs/mcp.md starts the server, for a directory.
func documentedServer(t *testing.T, dir string) []string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(doc), "```") {
		var file struct {
			Servers map[string]struct {
				Command string
				Args    []string
			} `json:"mcpServers"`
		}
		if text, ok := strings.CutPrefix(block, "json\n"); !ok || json.Unmarshal([]byte(text), &file) != nil || file.Servers["troupe"].Command != "troupe" {
			continue
		}
		args := file.Servers["troupe"].Args
		at := slices.Index(args, "--dir") + 1
		if at == 0 || at == len(args) {
			t.Fatalf("no --dir in %q", args)
		}
		args[at] = dir
		return args
	}
	t.Fatal("docs/mcp.md has no configuration of a client")
	return nil
}

// The run of an agent's tool is canceled when the client leaves during the call.
func TestAnMCPClientThatLeavesCancelsItsRun(t *testing.T) {
	t.Parallel()
	h := newTestHome(t, map[string]string{
		"config/troupe/agents/slow.md": "---\nname: slow\ndescription: Waits.\ntools: Bash\nx-troupe: {export: true}\n---\nWait.\n",
		"config/troupe/troupe.yaml":    "permissions:\n  allow: [Bash]\n",
		"work/note.md":                 "old\n",
		"work.yaml":                    "default:\n  - calls: [{name: shell, args: {command: \"touch begun; sleep 100\"}}]\n  - text: slept\n"})
	cmd := h.command("mcp", "serve", "--dir", "work", "--answers")
	cmd.Env = append(cmd.Env, "TROUPE_MODEL=script/"+filepath.Join(h.home, "work.yaml"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: out, Writer: in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	called := make(chan error, 1)
	go func() {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "agent_slow", Arguments: map[string]any{"task": "sleep"}})
		called <- err
	}()
	for begun := false; !begun; {
		select {
		case err := <-called:
			t.Fatalf("the call ended before its command began: %v", err)
		case <-time.After(processPollPause):
		}
		_, err := os.Stat(filepath.Join(h.home, "work/begun"))
		begun = err == nil
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	<-called // with what it has
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if out, err := h.command("list").Output(); err != nil || !strings.Contains(string(out), "canceled (tool aborted)") {
		t.Errorf("list: %v\n%s", err, out)
	}
}

// Two servers of one user share a node; each works in its own directory, and nowhere else.
func TestTwoMCPServersWorkInTheirDirectories(t *testing.T) {
	t.Parallel()
	h := newTestHome(t, map[string]string{
		"config/troupe/agents/writer.md": "---\nname: writer\ndescription: Writes.\ntools: Write\nx-troupe: {export: true}\n---\nWrite.\n",
		"config/troupe/troupe.yaml":      "permissions:\n  allow: [Write]\n",
		"first/note.md":                  "old\n",
		"second/note.md":                 "old\n",
		"work.yaml":                      "default:\n  - calls: [{name: write_file, args: {path: note.md, content: \"new\\n\"}}]\n  - text: the note is written\n"})
	connect := func(dir string) *mcp.ClientSession {
		cmd := h.command("mcp", "serve", "--dir", dir, "-m", "script/"+filepath.Join(h.home, "work.yaml"))
		cmd.Stderr = os.Stderr
		c, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := connect("first")
	second := connect("second")
	call := func(dir string) (text string, failed bool) {
		t.Helper()
		r, err := second.CallTool(t.Context(), &mcp.CallToolParams{Name: "agent_writer", Arguments: map[string]any{"task": "write the note", "dir": dir}})
		if err != nil {
			t.Fatal(err)
		}
		return r.Content[0].(*mcp.TextContent).Text, r.IsError
	}
	if text, failed := call(filepath.Join(h.home, "first")); !failed || !strings.Contains(text, "is not below") {
		t.Errorf("a directory that --dir does not name: %s", text)
	}
	if text, failed := call(""); failed {
		t.Errorf("its own directory: %s", text)
	}
	for dir, want := range map[string]string{"first": "old\n", "second": "new\n"} {
		if b, err := os.ReadFile(filepath.Join(h.home, dir, "note.md")); err != nil || string(b) != want {
			t.Errorf("%s/note.md is %q, %v", dir, b, err)
		}
	}
	for _, c := range []*mcp.ClientSession{second, first} {
		if err := c.Close(); err != nil {
			t.Errorf("a server ended with %v", err)
		}
	}
}

// A line that is no message is answered with an error, and the server goes on.
func TestAnMCPServerGoesOnAfterABadLine(t *testing.T) {
	t.Parallel()
	h := newTestHome(t, map[string]string{"work/note.md": "old\n"})
	cmd := h.command("mcp", "serve", "--dir", "work")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const initialize = `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	if _, err := io.WriteString(in, "not JSON\n\n[]\n[{\"id\":1}]\n"+initialize+"\n"); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	for _, want := range []string{`"id":null,"error":{"code":-32700,`, `"id":null,"error":{"code":-32600,`, `"id":null,"error":{"code":-32600,`, `"id":7,`} {
		if !answers.Scan() || !strings.Contains(answers.Text(), want) {
			t.Errorf("the answer has no %s: %s", want, answers.Text())
		}
	}
	if err := in.Close(); err != nil { // a server that gets the end sooner may end before its last answer
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}
