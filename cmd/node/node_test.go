package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/cli"
	"github.com/troupe-run/troupe/internal/node"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"troupe-node": main, "troupe": func() { os.Exit(cli.Run(os.Args[1:], embedded.StartServer, cli.JoinTimeout)) }})
}

const patience = 60 * time.Second

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command("troupe-node", args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME="+filepath.Join(home, "state"), "XDG_CONFIG_HOME="+filepath.Join(home, "config"),
		"OLLAMA_HOST=127.0.0.1:1", "NATS_URL=", "NATS_CONTEXT=", "ANTHROPIC_API_KEY=", "OPENAI_API_KEY=", "GEMINI_API_KEY=", "GOOGLE_API_KEY=")
	cmd.WaitDelay = patience
	return cmd
}

// startNode returns the line that a node prints when it is ready.
func startNode(t *testing.T, cmd *exec.Cmd) (line string) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}
	})
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("not ready: %v\n%s", err, stderr.String())
	}
	return line
}

func exitOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

// A node that receives a stop signal hands its runs over to the next node.
func TestNextNodeContinuesAfterAnOrderlyStop(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "slow.yaml")
	slow := func(delay string) {
		if err := os.WriteFile(path, []byte("default: [{text: at last, delay: "+delay+"}]"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slow("10m")
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		cmd := command(t, "--store-dir", filepath.Join(dir, "state"), "--root", dir, "-o", "json", "--durability", "lazy", "--nats-port", "-1",
			"--drain-timeout", "200ms")
		var ready struct {
			URL  string `json:"url"`
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(startNode(t, cmd)), &ready); err != nil || ready.Type != "ready" || !strings.HasPrefix(ready.URL, "nats://127.0.0.1:") {
			t.Fatalf("%v %+v", err, ready)
		}
		c, err := client.Join(filepath.Join(dir, "state"), func() {})
		if err != nil {
			t.Fatal(err)
		}
		if signal == syscall.SIGTERM {
			task := client.RunRequest{RunID: "slow", Prompt: "wait", Model: "script/" + path}
			approve := func() {
				if err := node.ApproveRequest(node.Config{StateDir: filepath.Join(dir, "state")}, task); err != nil {
					t.Fatal(err)
				}
			}
			approve()
			if _, err := c.Run(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			slow("0s")
			approve() // the next node plays no other content
		} else {
			info, err := c.Wait(t.Context(), "slow")
			if err != nil || info.Result.Text != "at last" {
				t.Errorf("%v %+v", err, info)
			}
		}
		c.Close()
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := exitOf(t, cmd.Wait()); code != 0 {
			t.Errorf("%s: exit %d\n%s", signal, code, cmd.Stderr)
		}
	}
}

func TestNodeRefusesInvalidFlags(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--durability", "never"}, 2, "--durability is sync or lazy"},
		{[]string{"--root", "nowhere"}, 2, "nowhere"},
		{[]string{"--nats-port", "99999"}, 2, "not a port"},
		{[]string{"--max-live-runs", "-1"}, 2, "--max-live-runs and --max-queued-runs must not be negative"},
		{[]string{"--reconcile-every", "-1s"}, 2, "--reconcile-every -1s"},
		{[]string{"--retain-age", "0"}, 2, `retain_age: "0" is neither an age such as 36h, 30d or 8w nor off`},
		{[]string{"--retain-size", "2 GiB"}, 2, `retain_size: "2 GiB" is neither a size such as 500MiB or 2GiB nor off`},
		{[]string{"--requests-per-minute", "openai=0"}, 2, "requests_per_minute: invalid rates per minute: openai=0: it may be 1 to"},
		{[]string{"--nonsense"}, 2, "unknown flag"},
		{[]string{"argument"}, 2, "takes no arguments"},
		{[]string{"--nats-port", port}, 6, "cannot listen"},
		{[]string{"--http", "here"}, 2, "--http is HOST:PORT or off"},
		{[]string{"--http", "127.0.0.1:" + port, "--nats-port", "-1"}, 6, "httpapi: cannot listen"},
		{[]string{"--http-token-file", "nowhere"}, 2, "--http-token-file"},
		{[]string{"--http", "off", "--http-open-probes"}, 2, "need --http"},
		{[]string{"--agents-owner", "ops"}, 2, "need --agents-on-bus"},
		{[]string{"--agents-on-bus", "--agents-owner", "a.b"}, 2, "write up to 63"},
		{[]string{"-s", "nats://127.0.0.1:1", "--http", "127.0.0.1:0"}, 2, "needs a token"},
		{[]string{"-s", "nats://127.0.0.1:1"}, 6, "no NATS server"},
		{[]string{"-s", startPlainServer(t)}, 6, "JetStream"},
	} {
		out, err := command(t, c.args...).CombinedOutput()
		if code := exitOf(t, err); code != c.code || !strings.Contains(string(out), c.says) || !strings.Contains(string(out), "\nhint: ") {
			t.Errorf("%v: exit %d, want %d with %q:\n%s", c.args, code, c.code, c.says, out)
		}
	}
}

// The directory that a node is started in may be a repository that was cloned.
func TestTheDirectoryOfANodeDoesNotSayWhereItsStateIs(t *testing.T) {
	for line, says := range map[string]string{"store_dir: s": "troupe.yaml:1: store_dir: only the user can set this", "pricing_file: p.json": "troupe.yaml:1: pricing_file: only the user",
		"retain_age: 1s": "troupe.yaml:1: retain_age: only the user can set this"} {
		cmd := command(t)
		if err := os.WriteFile(filepath.Join(cmd.Dir, "troupe.yaml"), []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.CombinedOutput()
		if code := exitOf(t, err); code != 2 || !strings.Contains(string(out), says) {
			t.Errorf("%s: exit %d\n%s", line, code, out)
		}
	}
}

// startPlainServer starts a server without JetStream.
func startPlainServer(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	return s.ClientURL()
}

// One directory has one node.
func TestTheSecondNodeIsRefused(t *testing.T) {
	dir := t.TempDir()
	first := command(t, "--store-dir", dir, "--nats-port", "-1", "--durability", "lazy")
	if line := startNode(t, first); !strings.HasPrefix(line, "ready nats://127.0.0.1:") {
		t.Errorf("%q", line)
	}
	out, err := command(t, "--store-dir", dir, "--nats-port", "-1").CombinedOutput()
	if code := exitOf(t, err); code != 6 || !strings.Contains(string(out), "in use by another process") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// A node serves HTTP without being asked to, and says where its token is; without the token it answers
// nothing.
func TestNodeServesHTTP(t *testing.T) {
	state := t.TempDir()
	cmd := command(t, "--store-dir", state, "--nats-port", "-1", "--durability", "lazy", "-o", "json", "--http", "127.0.0.1:0", "--http-open-probes")
	var ready struct {
		HTTP string `json:"http"`
	}
	if err := json.Unmarshal([]byte(startNode(t, cmd)), &ready); err != nil || !strings.HasPrefix(ready.HTTP, "http://127.0.0.1:") {
		t.Fatalf("%v %+v", err, ready)
	}
	token, err := os.ReadFile(filepath.Join(state, "http.token"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path, token string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", ready.HTTP+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		raw, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, strings.TrimSpace(string(raw))
	}
	for _, c := range []struct {
		path, token string
		status      int
		says        string
	}{
		{"/api/v1/runs", string(token), 200, "[]"},
		{"/api/v1/runs", "wrong", 401, "docs/http.md"},
		{"/healthz", "wrong", 200, `{"status":"ok"}`},
		{"/readyz", "wrong", 200, `{"status":"ok"}`},
	} {
		if status, body := ask(c.path, c.token); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %s", c.path, status, body)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitOf(t, cmd.Wait()); code != 0 {
		t.Errorf("exit %d", code)
	}
	for _, says := range []string{"http at " + ready.HTTP, `echo "Authorization: Bearer $(cat `, `)" | curl -H @- ` + ready.HTTP + "/api/v1/runs", filepath.Join(state, "http.token")} {
		if stderr := cmd.Stderr.(*bytes.Buffer).String(); !strings.Contains(stderr, says) || strings.Contains(stderr, strings.TrimSpace(string(token))) {
			t.Errorf("stderr lacks %q, or holds the token:\n%s", says, stderr)
		}
	}
}
