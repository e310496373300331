package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// firstRequest is the time from the start of a process to its first model request.
const firstRequest figure = "ms to the first request"

// errFirst: a process ended without a model request.
var errFirst = errors.New("bench: no model request came")

// measureFirst starts a process that runs one agent, and waits for its first model request. For
// the entry point the process is the program troupe itself.
func (p plan) measureFirst(c column, scratch string) (sample, error) {
	arrived := make(chan time.Time, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case arrived <- time.Now():
		default: // only the first counts
		}
		answerCompletion(w, r)
	}))
	defer server.Close()
	cmd, err := p.firstCommand(c, server.URL+"/v1", scratch)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %w\n%s", errChild, err, out)
	}
	select {
	case at := <-arrived:
		return sample{firstRequest: millis(at.Sub(began))}, nil
	default:
		return nil, fmt.Errorf("%w\n%s", errFirst, out)
	}
}

func (p plan) firstCommand(c column, url, scratch string) (*exec.Cmd, error) {
	if c.name != columnEntry {
		cmd, err := selfCommand("-once", c.name, "-server", url, "-scratch", scratch)
		if err == nil {
			cmd.Env = append(os.Environ(), "TMPDIR="+scratch)
		}
		return cmd, err
	}
	work := filepath.Join(scratch, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	cmd := exec.Command(p.troupe, "run", "--store-dir", filepath.Join(scratch, "store"), "--dir", work, "--model", httpRoute+onceScript, "do it")
	cmd.Env = append(envWithoutKeys(), "OPENAI_BASE_URL="+url, "XDG_STATE_HOME="+scratch, "XDG_CONFIG_HOME="+scratch, "TMPDIR="+scratch)
	return cmd, nil
}

// onceScript is what the model of measureFirst plays.
const onceScript = "look-1"

// envWithoutKeys is the environment without the keys and addresses of models.
func envWithoutKeys() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasSuffix(name, "_API_KEY") && !strings.HasSuffix(name, "_BASE_URL") {
			env = append(env, v)
		}
	}
	return env
}

// runOnce runs one agent of a column, in this process.
func runOnce(name, url, scratch string) error {
	c, err := findColumn(name)
	if err != nil {
		return err
	}
	played, err := parseScript(onceScript)
	if err != nil {
		return err
	}
	ctx := context.Background()
	r, err := c.open(ctx, setup{script: played, url: url, dir: scratch, agents: 1})
	if err != nil {
		return err
	}
	return errors.Join(r.run(ctx), r.close())
}

// buildTroupe builds the program troupe, which lies two folders up.
func buildTroupe(dir string) (string, error) {
	path := filepath.Join(dir, "troupe")
	build := exec.Command("go", "build", "-o", path, "./cmd/cli")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("bench: build troupe: %w\n%s", err, out)
	}
	return path, nil
}
