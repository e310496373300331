// Package mockprovider runs a third party's mock of the model providers, the
// npm package @copilotkit/aimock, on a loopback port: a judge of our clients
// that shares no code with them.
//
// It needs Node.js 20 or later and npm. Its tests, and other tests that use it,
// are built only with the tag e2e, where a missing tool is a failure:
//
//	go test -tags e2e ./internal/test/mockprovider/...
package mockprovider

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/test/npm"
)

// Version is the version that is installed; package-lock.json pins its digest.
const Version = "1.43.0"

// Bounds.
const (
	StartTimeout = 30 * time.Second
	stopTimeout  = 5 * time.Second
	maxJournal   = 32 << 20
)

//go:embed npm/package.json npm/package-lock.json
var files embed.FS

// Errors of Install and Start.
var (
	// ErrTool means that a program that the mock needs is missing.
	ErrTool = npm.ErrTool
	// ErrStart means that the mock did not begin to listen.
	ErrStart = errors.New("mockprovider: the mock did not start")
)

// installMock installs the mock in the user's cache directory, once for a version,
// and returns the script to run.
func installMock(ctx context.Context) (string, error) {
	sub, err := fs.Sub(files, "npm")
	if err != nil {
		return "", fmt.Errorf("mockprovider: %w", err)
	}
	modules, err := npm.Install(ctx, "aimock", sub)
	if err != nil {
		return "", err
	}
	return filepath.Join(modules, "@copilotkit", "aimock", "dist", "aimock-cli.js"), nil
}

// Config configures the mock.
type Config struct {
	// Fixtures is a fixture file of aimock, JSON.
	Fixtures []byte
	// Dir holds the files of this mock; it must exist.
	Dir string
	// ChunkSize is how many characters one event of a stream holds; 0 means 8.
	ChunkSize int
	// Log receives the output of the mock; nil drops it.
	Log io.Writer
}

const defaultChunkSize = 8

// MockServer is a running mock.
type MockServer struct {
	// URL is its root.
	URL     string
	cmd     *exec.Cmd
	drained chan struct{}
}

// Start installs the mock if needed and starts it on a free loopback port. A
// request that no fixture matches is answered with an error.
func Start(ctx context.Context, cfg Config) (*MockServer, error) {
	entry, err := installMock(ctx)
	if err != nil {
		return nil, err
	}
	if !json.Valid(cfg.Fixtures) { // the mock would start without any
		return nil, fmt.Errorf("%w: the fixtures are not JSON", ErrStart)
	}
	if cfg.ChunkSize == 0 {
		cfg.ChunkSize = defaultChunkSize
	}
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	config, err := json.Marshal(map[string]any{
		"host": "127.0.0.1", "port": 0, "strict": true,
		"llm": map[string]any{"fixtures": filepath.Join(cfg.Dir, "fixtures.json"), "chunkSize": cfg.ChunkSize, "logLevel": "warn"},
	})
	if err != nil {
		return nil, fmt.Errorf("mockprovider: %w", err)
	}
	path := filepath.Join(cfg.Dir, "aimock.json")
	for name, data := range map[string][]byte{path: config, filepath.Join(cfg.Dir, "fixtures.json"): cfg.Fixtures} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return nil, fmt.Errorf("mockprovider: %w", err)
		}
	}
	cmd := exec.Command("node", entry, "--config", path)
	cmd.Stderr = cfg.Log
	cmd.WaitDelay = stopTimeout
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("mockprovider: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrStart, err)
	}
	m := &MockServer{cmd: cmd, drained: make(chan struct{})}
	found := make(chan string, 1)
	go m.readOutput(out, cfg.Log, found)
	return m, m.waitForURL(ctx, found)
}

// listening is the text that the mock prints before its URL.
const listening = "listening on "

// readOutput reads the mock's output to its end and sends the URL on.
func (m *MockServer) readOutput(out io.Reader, log io.Writer, found chan<- string) {
	defer close(m.drained)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(log, lines.Text())
		if _, url, ok := strings.Cut(lines.Text(), listening); ok {
			select {
			case found <- strings.TrimSpace(url):
			default:
			}
		}
	}
}

func (m *MockServer) waitForURL(ctx context.Context, found <-chan string) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	select {
	case m.URL = <-found:
		return nil
	case <-m.drained:
		select {
		case m.URL = <-found:
			return nil
		default:
			return errors.Join(fmt.Errorf("%w: it ended", ErrStart), m.Close())
		}
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%w: %v", ErrStart, ctx.Err()), m.Close())
	}
}

// Close stops the mock and waits for its end.
func (m *MockServer) Close() error {
	_ = m.cmd.Process.Kill()
	<-m.drained
	var exit *exec.ExitError
	if err := m.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("mockprovider: %w", err)
	}
	return nil
}

// JournalEntry is one request that the mock got. The mock writes the bodies of all
// providers in the form of Chat Completions, and leaves out credentials.
type JournalEntry struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    struct {
		Model     string    `json:"model"`
		Messages  []Message `json:"messages"`
		Stream    bool      `json:"stream"`
		MaxTokens int64     `json:"max_tokens"`
		MaxOutput int64     `json:"max_completion_tokens"`
		Tools     []struct {
			Function struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	} `json:"body"`
	Response struct {
		Status int `json:"status"`
	} `json:"response"`
}

// Message is one message of a request.
type Message struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// Journal returns the requests that the mock has received so far, in order.
func (m *MockServer) Journal(ctx context.Context) ([]JournalEntry, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+"/__aimock/journal", nil)
	if err != nil {
		return nil, fmt.Errorf("mockprovider: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("mockprovider: %w", err)
	}
	defer res.Body.Close()
	var entries []JournalEntry
	if err := json.NewDecoder(io.LimitReader(res.Body, maxJournal)).Decode(&entries); err != nil {
		return nil, fmt.Errorf("mockprovider: journal: %w", err)
	}
	return entries, nil
}
