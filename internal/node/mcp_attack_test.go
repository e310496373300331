//go:build linux

package node

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/tool"
)

// TestAttackServerOfADirectoryIsNotStartedInAnother: the user approved a server of the
// directory of a run. An attacker who may rename above it puts a link, or another directory
// with the same files, in its place and kills the server: it is not started again from
// there.
func TestAttackServerOfADirectoryIsNotStartedInAnother(t *testing.T) {
	above, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, aside, evil := filepath.Join(above, "work"), filepath.Join(above, "aside"), filepath.Join(above, "evil")
	config, starts := countingProgram(t)
	for _, name := range []string{dir, evil} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		serverFile(t, filepath.Join(name, mcpclient.FileName), map[string]any{"stage": config})
	}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{above} })
	allowServer(t, h, dir)
	o, _ := buildOpened(t, h, client.RunRequest{Dir: dir})
	tools := h.toolset.RemoteTools(spec.Task{Workspace: dir, Servers: o.Servers, Tools: o.Tools})
	i := slices.IndexFunc(tools, func(x tool.Tool) bool { return x.Spec().Name == "mcp__stage__shout" })
	if i < 0 {
		t.Fatal("the run does not have the tool")
	}
	call := func() (string, error) {
		r, err := tools[i].Call(testContext(t), tool.Call{ID: "1", Args: json.RawMessage(`{"text":"up"}`)})
		return r.Text, err
	}
	if text, err := call(); err != nil || !strings.Contains(text, "UP") {
		t.Fatal(text, err)
	}
	stop := func() {
		for _, line := range starts() {
			if pid, err := strconv.Atoi(line); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // those that have ended are gone
			}
		}
	}
	do := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	before := len(starts())
	for name, swap := range map[string]func(){
		"a link":            func() { do(os.Symlink(evil, dir)) },
		"another directory": func() { do(os.Mkdir(dir, 0o755), os.CopyFS(dir, os.DirFS(evil))) },
		"a pipe":            func() { do(syscall.Mkfifo(dir, 0o644)) },
	} {
		do(os.Rename(dir, aside))
		swap()
		stop()
		if text, err := call(); !errors.Is(err, workdir.ErrReplaced) || len(starts()) != before {
			t.Errorf("%s: %q %v, started %d times", name, text, err, len(starts()))
		}
		do(os.RemoveAll(dir), os.Rename(aside, dir))
	}
	waitUntil(t, "the directory is back, and the node has noticed the end of the server", func() bool {
		text, err := call()
		return err == nil && strings.Contains(text, "UP")
	})
	if len(starts()) != before+1 {
		t.Errorf("started %d times", len(starts()))
	}
}
