package mcpclient

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/troupe-run/troupe/internal/test/leaks"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// actVar makes this test binary a server over stdin and stdout.
const actVar = "MCP_TEST_ACT"

func TestMain(m *testing.M) {
	if part := os.Getenv(actVar); part != "" {
		playPart(part)
	}
	// Servers of tests whose clients went without a word keep their sessions.
	leaks.Main(m, goleak.IgnoreTopFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
}

const anything = `{"type":"object"}`

// testTools of a test's server, by name.
type testTools map[string]func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)

func answerText(text string) func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	}
}

func buildServer(all testTools) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "stage", Version: "1"}, nil)
	for name, f := range all {
		s.AddTool(&sdk.Tool{Name: name, Description: "does " + name, InputSchema: json.RawMessage(anything)}, f)
	}
	return s
}

// playPart plays a server's part until stdin ends. It ends by syscall.Exit: os.Exit sleeps for a second under the race detector.
func playPart(part string) {
	count := func() {
		f, err := os.OpenFile(os.Getenv("MCP_TEST_STARTS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, os.Getpid())
			_ = f.Close()
		}
	}
	count()
	switch part {
	case "mute": // it never answers, and does not end with its stdin
		<-time.After(time.Hour)
	case "broken":
		fmt.Fprintln(os.Stderr, "no database; password="+os.Getenv("SECRET_WORD"))
		syscall.Exit(3)
	case "wordy": // what is shown of it begins within the secret
		word := os.Getenv("SECRET_WORD")
		fmt.Fprint(os.Stderr, word, strings.Repeat("x", stderrShown-len(word)/2))
		syscall.Exit(3)
	}
	all := testTools{
		"echo": func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
		},
		"env": func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			dir, err := os.Getwd()
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Join(os.Environ(), "\n") + "\nin " + dir}}}, err
		},
		"die": func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			syscall.Exit(1)
			return nil, nil
		},
		"hang": func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"huge": answerText(strings.Repeat("0123456789", 300_000)),
		"flood": func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { // one message that is too long
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("0", MessageBytesMax+1)}}}, nil
		},
		"junk": func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			fmt.Println("this is no JSON") // on the server's stdout
			return &sdk.CallToolResult{}, nil
		},
		"twice": func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"first"}]}}`+"\n", os.Getenv("MCP_TEST_ID"))
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "second"}}}, nil
		},
	}
	if part == "deaf" { // it greets and lists, and then reads no more
		readOnce()
	}
	err := buildServer(all).Run(context.Background(), &sdk.StdioTransport{})
	if part == "stubborn" {
		<-time.After(time.Hour) // it has lost its stdin, and stays
	}
	if err != nil {
		syscall.Exit(1)
	}
	syscall.Exit(0)
}

// readOnce answers what comes first, and then reads no more.
func readOnce() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		switch r.Method {
		case "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"deaf","version":"1"}}}`+"\n", r.ID)
		case "tools/list":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","description":"d","inputSchema":{"type":"object"}}]}}`+"\n", r.ID)
			<-time.After(time.Hour)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", r.ID)
		}
	}
}

// programServer is a definition of this test binary in a part.
func programServer(t *testing.T, part string) (def Server, starts func() []string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "starts")
	return Server{Name: "stage", Source: "user.json", Command: exe, Env: map[string]string{actVar: part, "MCP_TEST_STARTS": file}}, func() []string {
		data, _ := os.ReadFile(file) // none yet
		return strings.Fields(string(data))
	}
}

// loopbackServer is a definition of a server at a loopback address.
func loopbackServer(t *testing.T, s *sdk.Server) Server {
	t.Helper()
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() { closeServerNow(t, h) })
	return Server{Name: "stage", Source: "user.json", URL: h.URL}
}

// closeServerNow ends a server without waiting for its clients, who may stay for ever.
func closeServerNow(t *testing.T, h *httptest.Server) {
	t.Helper()
	if err := h.Listener.Close(); err != nil {
		t.Error(err)
	}
	h.CloseClientConnections()
}

func openHub(t *testing.T, change ...func(*Config)) *Hub {
	t.Helper()
	cfg := Config{Getenv: func(string) string { return "" }}
	for _, c := range change {
		c(&cfg)
	}
	h := New(cfg)
	t.Cleanup(h.Close)
	return h
}

// patienceOfTests is how long a test waits for what must happen.
const patienceOfTests = 60 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patienceOfTests)
	t.Cleanup(cancel)
	return ctx
}

func listOffers(t *testing.T, h *Hub, def Server) Listing {
	t.Helper()
	l, err := h.List(testContext(t), def, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func toolNames(specs []model.ToolSpec) string {
	var list []string
	for _, s := range specs {
		list = append(list, s.Name)
	}
	return strings.Join(list, " ")
}

func offeredTools(l Listing) []model.ToolSpec {
	var list []model.ToolSpec
	for _, o := range l.Offers {
		list = append(list, o.Spec)
	}
	return list
}

// toolSet is all tools of a server as an agent has them.
func toolSet(t *testing.T, h *Hub, def Server, dir string) *tool.Set {
	t.Helper()
	l, err := h.List(testContext(t), def, dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []tool.Tool
	for _, o := range l.Offers {
		all = append(all, h.Tool(o.Spec, dir, func() (Server, error) { return def, nil }))
	}
	s, err := tool.NewSet(all...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func callTool(t *testing.T, s *tool.Set, name, args string) tool.Result {
	t.Helper()
	return s.Call(testContext(t), name, tool.Call{Args: []byte(args)})
}

// callCounter counts, from several goroutines.
type callCounter struct{ atomic.Int64 }

// waitUntil waits until something is so.
func waitUntil(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patienceOfTests); time.Now().Before(end); <-tick.C {
		if so() {
			return
		}
	}
	t.Fatalf("it never was so: %s", what)
}
