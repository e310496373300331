package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/term"
)

const (
	upNodesMax  = 16
	upStopGrace = 30 * time.Second // for a node to stop in order
	upLineMax   = 64 << 10
)

const trustUsage = "directory outside of the roots whose agent files, MCP server files and scripts requests may use with the commands in them; may be repeated"

// up is the flags of the command.
type up struct {
	nodes int
	root  []string
	trust []string
	bin   string
	lazy  bool
	port  int
	open  access
	live  int
	// queued is how many runs each node queues.
	queued int
}

func (a *nodeCommands) upCommand() *cobra.Command {
	var u up
	c := &cobra.Command{
		Use: "up", Args: none,
		Short: "Start several node processes that share the work, on this machine",
		Long: `Start a NATS server and N node processes that share its shards, each as a process of
its own, their output prefixed by the node. With -s, --context or NATS_URL the nodes
use that server. Kill a node and watch the others take over. Ctrl-C stops them all.

The nodes are the troupe-node program: beside this one, in PATH, or --node-binary.`,
		Example:     "  troupe up --nodes 3 --root ~/src\n  troupe up --nodes 3 &\n  troupe nodes list\n  troupe run \"Say hello\"",
		Annotations: map[string]string{formats: "text"},
		RunE:        func(*cobra.Command, []string) error { return a.up(u) },
	}
	f := c.Flags()
	f.IntVar(&u.nodes, "nodes", 3, "how many nodes")
	f.StringSliceVar(&u.root, "root", nil, "directory that clients may name, with all below; may be repeated")
	f.StringSliceVar(&u.trust, "trust", nil, trustUsage)
	f.StringVar(&u.bin, "node-binary", "", "path of troupe-node")
	f.BoolVar(&u.lazy, "lazy", false, "survive only the death of processes, not the loss of power")
	f.IntVar(&u.port, "nats-port", 0, "port of the server (default 4222 or else a free one)")
	f.BoolVar(&u.open.watch, "open-watch", false, embedded.OpenWatchUsage)
	f.BoolVar(&u.open.control, "open-control", false, embedded.OpenControlUsage)
	f.IntVar(&u.live, "max-live-runs", 0, fmt.Sprintf("most runs that are live on one node at once; later ones are queued (default %d)", node.MaxLiveRuns))
	f.IntVar(&u.queued, "max-queued-runs", 0, fmt.Sprintf("most runs that one node queues; it refuses further ones (default %d)", node.MaxQueuedRuns))
	return c
}

// access is what connections without a credential may do.
type access struct{ watch, control bool }

func (a *nodeCommands) up(u up) error {
	if u.nodes < 1 || u.nodes > upNodesMax {
		return usage(fmt.Sprintf("1 to %d", upNodesMax), "--nodes %d", u.nodes)
	}
	bin, err := nodeBinary(u.bin)
	if err != nil {
		return err
	}
	sig := catch()
	defer sig.stop()
	env, flags, done, err := a.upServer(u)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(sig.starting)
	defer cancel()
	var wait sync.WaitGroup
	errs := make([]error, u.nodes)
	lines := &lineWriter{to: a.console.err}
	for i := range u.nodes {
		name := fmt.Sprintf("node-%d", i+1)
		args := []string{"--name", name}
		if u.live != 0 {
			args = append(args, "--max-live-runs", fmt.Sprint(u.live))
		}
		if u.queued != 0 {
			args = append(args, "--max-queued-runs", fmt.Sprint(u.queued))
		}
		for _, r := range u.root {
			args = append(args, "--root", r)
		}
		for _, t := range u.trust {
			args = append(args, "--trust", t)
		}
		cmd := exec.CommandContext(ctx, bin, append(args, flags...)...)
		cmd.Env = append(os.Environ(), env...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = upStopGrace
		wait.Go(func() { errs[i] = follow(cmd, name, lines) })
	}
	wait.Wait()
	if ctx.Err() != nil {
		errs = nil // they were stopped on purpose
	}
	return errors.Join(append(errs, done())...)
}

// upServer starts a server for the nodes, unless one is given, and returns the
// environment by which they find it and the flags by which they prove it.
func (a *nodeCommands) upServer(u up) (env, flags []string, done func() error, err error) {
	if u.lazy {
		flags = []string{"--durability", "lazy"}
	}
	if a.sessions.conn.Given() {
		return a.sessions.conn.environment(), flags, func() error { return nil }, nil
	}
	e, err := embedded.Start(embedded.Config{StateDir: statedir.StateDir(a.sessions.storeIn), Port: u.port, Lazy: u.lazy, ConfigHome: embedded.ConfigHome(a.console.getenv),
		OpenWatch: u.open.watch, OpenControl: u.open.control, Logger: a.console.logger()})
	if err != nil {
		return nil, nil, nil, err
	}
	a.console.say(term.Line("NATS at " + e.URL() + "; watch with: " + e.Watch() + " sub '" + names.Names{}.Events() + "' --translate 'troupe fmt'"))
	if line := embedded.OpenWarning(u.open.watch, u.open.control); line != "" {
		a.console.say(a.console.errors.Yellow("warning: " + line))
	}
	return nodeVariables(e), flags, e.Close, nil
}

// nodeVariables are how the nodes reach the server: by the socket of its state
// directory, which proves it. They say nothing of another server.
func nodeVariables(e *embedded.Server) []string {
	node, service := e.Options(bus.RoleNode), e.Options(bus.RoleService)
	return []string{"NATS_URL=", "NATS_CONTEXT=", bus.OwnerVariable + "=" + node.Owner, "NATS_USER=" + node.User, "NATS_PASSWORD=" + node.Password,
		"TROUPE_SERVICE_USER=" + service.User, "TROUPE_SERVICE_PASSWORD=" + service.Password}
}

var errNodeBinary = errors.New("there is no troupe-node program")

// nodeBinary finds troupe-node: at the given path, next to this program, or in PATH.
func nodeBinary(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	self, err := os.Executable()
	if err == nil {
		if beside := filepath.Join(filepath.Dir(self), "troupe-node"); isFile(beside) {
			return beside, nil
		}
	}
	if found, err := exec.LookPath("troupe-node"); err == nil {
		return found, nil
	}
	return "", &failure{exitUsage, errNodeBinary, "go build -o troupe-node ./cmd/node, then --node-binary ./troupe-node"}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// follow runs one node and prints its output, line by line, behind its name.
func follow(cmd *exec.Cmd, name string, to *lineWriter) error {
	runtime.LockOSThread() // see detach
	defer runtime.UnlockOSThread()
	detach(cmd)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	var read sync.WaitGroup
	read.Go(func() {
		s := bufio.NewScanner(out)
		s.Buffer(nil, upLineMax)
		for s.Scan() {
			to.line(name + " | " + s.Text())
		}
		_, _ = io.Copy(io.Discard, out) // a line that is too long must not block the node
	})
	err := cmd.Run()
	_ = in.Close() // of a pipe in memory: it cannot fail
	read.Wait()
	to.line(fmt.Sprintf("%s | ended: %v", name, cmd.ProcessState))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// lineWriter writes whole lines from several nodes. It cleans each line, because a node may
// quote text that no terminal should receive as it is.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lineWriter) line(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = io.WriteString(w.to, term.Clean(text)+"\n") // there is nowhere to report a failure
}
