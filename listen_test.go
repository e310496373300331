package troupe_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/internal/bus"
)

// openListeners are the sockets of this process that take connections, of TCP and of the
// file system.
func openListeners(t *testing.T) map[string]bool {
	t.Helper()
	own, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{}
	for _, fd := range own {
		if to, err := os.Readlink(fd); err == nil { // else it is closed by now
			if inode, ok := strings.CutPrefix(to, "socket:["); ok {
				ours[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	found := map[string]bool{}
	for table, at := range map[string]struct {
		state, inode int
		listens      string
	}{"tcp": {3, 9, "0A"}, "tcp6": {3, 9, "0A"}, "unix": {5, 6, "01"}} {
		text, err := os.ReadFile("/proc/self/net/" + table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			// A Unix socket that listens has the flag SO_ACCEPTCON (00010000) in field 3.
			if len(f) <= at.inode || !ours[f[at.inode]] || f[at.state] != at.listens || table == "unix" && f[3] != "00010000" {
				continue
			}
			found[table+" "+f[at.inode]] = true
		}
	}
	return found
}

// A program that embeds a node opens nothing to others, unless it asks for it.
func TestAttackEmbeddedNodeListensNowhere(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // there is no /proc
	}
	before := openListeners(t)
	n := startScripted(t, "agents: {a: [{text: hello}]}", troupe.Config{Agents: namedAgents("a"), StateDir: t.TempDir()})
	for l := range openListeners(t) {
		if !before[l] {
			t.Errorf("it listens: %s", l)
		}
	}
	if n.URL() != "" || n.Watch() != "" {
		t.Errorf("%q, %q", n.URL(), n.Watch())
	}
	if r, err := n.Run(testContext(t), troupe.Task{Prompt: "Say hello"}); err != nil || r.Text != "hello" {
		t.Errorf("%+v, %v", r, err)
	}
}

// With Listen the same user joins by the state directory, and observers by the port.
func TestEmbeddedNodeListens(t *testing.T) {
	dir := t.TempDir()
	n := startScripted(t, "agents: {a: [{text: hello}]}", troupe.Config{Agents: namedAgents("a"), StateDir: dir, Listen: true})
	if n.URL() == "" || !strings.HasSuffix(n.Watch(), " nats --context troupe") {
		t.Errorf("%q, %q", n.URL(), n.Watch())
	}
	nc, _, err := bus.JoinOwner(dir)
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if nc, err := nats.Connect(n.URL()); err == nil {
		nc.Close()
		t.Error("an anonymous connection is taken")
	}
}
