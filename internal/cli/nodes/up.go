package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/agentprotocol"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/term"
)

const (
	upNodesMax  = 16
	upStopGrace = 30 * time.Second // for a node to stop in order
	upLineMax   = 64 << 10
)

const trustUsage = "directory outside the roots from which requests may use agent files, MCP server files and scripts, including their commands; may be repeated"

// upFlags is the flags of the command.
type upFlags struct {
	nodes int
	root  []string
	trust []string
	bin   string
	lazy  bool
	port  int
	open  access
	live  int
	http  string // address of the first node
	// agents: the nodes export their agents.
	agents bool
	// queued is how many runs each node queues.
	queued int
	// requests and tokens are rates by provider and model.
	requests, tokens string
	// retainAge and retainSize are the limits of retention.
	retainAge, retainSize string
}

// Up makes the command up.
func (cs *Commands) Up() *cobra.Command {
	var u upFlags
	c := &cobra.Command{
		Use: "up", Args: command.NoArguments,
		Short: "Start several node processes on this machine that share the work",
		Long: `Start a NATS server and N node processes that share its shards. Each line of their
output begins with the node's name. With -s, --context or NATS_URL the nodes use that
server. Kill a node and watch the others take over. Ctrl-C stops them all.

The nodes run the program troupe-node, found next to this one, in PATH, or by
--node-binary.`,
		Example:     "  troupe up --nodes 3 --root ~/src\n  troupe up --nodes 3 &\n  troupe nodes list\n  troupe run --dir . \"Investigate this directory\"",
		Annotations: map[string]string{command.Formats: "text"},
		RunE:        func(*cobra.Command, []string) error { return cs.startNodes(u) },
	}
	f := c.Flags()
	f.IntVar(&u.nodes, "nodes", 3, "how many nodes")
	f.StringSliceVar(&u.root, "root", nil, "directory that clients may use, with everything below it; may be repeated")
	f.StringSliceVar(&u.trust, "trust", nil, trustUsage)
	f.StringVar(&u.bin, "node-binary", "", "path of troupe-node")
	f.BoolVar(&u.lazy, "lazy", false,
		"sync to disk lazily: entries survive the death of processes but not a loss of power")
	f.IntVar(&u.port, "nats-port", 0, "port of the server (default 4222 or else a free one)")
	f.BoolVar(&u.open.watch, "open-watch", false, localserver.OpenWatchUsage)
	f.BoolVar(&u.open.control, "open-control", false, localserver.OpenControlUsage)
	f.StringVar(&u.http, "http", "",
		"HOST:PORT at which the first node serves the HTTP API; the others take the ports that follow (docs/http.md)")
	f.BoolVar(&u.agents, "agents-on-bus", false, agentprotocol.Usage)
	f.IntVar(&u.live, "max-live-runs", 0, fmt.Sprintf("maximum live runs on each node; later ones are queued (default %d)", node.MaxLiveRuns))
	f.IntVar(&u.queued, "max-queued-runs", 0, fmt.Sprintf("maximum queued runs on each node; further ones are refused (default %d)", node.MaxQueuedRuns))
	f.StringVar(&u.retainAge, "retain-age", "",
		"how long a run stays after its end, such as 36h, 30d or 8w; off: keep forever (default 30d)")
	f.StringVar(&u.retainSize, "retain-size", "",
		"total size of logs and blobs before the oldest runs are removed, such as 500MiB; off: unlimited (default 2GiB)")
	f.StringVar(&u.requests, "requests-per-minute", "", config.RequestRatesUsage)
	f.StringVar(&u.tokens, "tokens-per-minute", "", config.TokenRatesUsage)
	return c
}

// access is what connections without a credential may do.
type access struct{ watch, control bool }

func (cs *Commands) startNodes(u upFlags) error {
	if _, _, err := config.ParseRetention(u.retainAge, u.retainSize); err != nil {
		return exit.UsageError("troupe up --retain-age 30d --retain-size 2GiB", "%s", exit.PlainText(err))
	}
	if _, _, err := config.ParseRates(u.requests, u.tokens); err != nil {
		return exit.UsageError("troupe up --requests-per-minute openai=500", "%s", exit.PlainText(err))
	}
	if u.nodes < 1 || u.nodes > upNodesMax {
		return exit.UsageError(fmt.Sprintf("use 1 to %d", upNodesMax), "--nodes %d is invalid", u.nodes)
	}
	for i := range u.root {
		if err := request.AbsoluteDir(&u.root[i]); err != nil {
			failure := exit.Explain(err)
			return exit.UsageError(failure.Hint, "--root: %w", failure.Err)
		}
	}
	var web []string
	if u.http != "" {
		var err error
		if web, err = httpAddresses(u.http, u.nodes); err != nil {
			return err
		}
	}
	bin, err := findNodeBinary(u.bin)
	if err != nil {
		return err
	}
	// what the user's commands record there counts on all nodes
	state, err := filepath.Abs(statedir.StateDir(cs.Sessions.StateDir))
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	sig := interrupt.Catch()
	defer sig.Stop()
	server, err := cs.startServer(u)
	if err != nil {
		return err
	}
	if web != nil {
		token, err := cs.httpEnvironment()
		if err != nil {
			return errors.Join(err, server.close())
		}
		server.env = append(server.env, token...)
	}
	errs := cs.runNodes(sig.Starting, u, nodeProgram{bin: bin, state: state, web: web, server: server})
	return errors.Join(append(errs, server.close())...)
}

// nodeProgram is what all nodes of troupe up have in common.
type nodeProgram struct {
	bin, state string
	web        []string // addresses over HTTP, one for each node; nil: none
	server     upServer
}

// runNodes runs the nodes until ctx ends or all have ended by themselves.
func (cs *Commands) runNodes(ctx context.Context, u upFlags, p nodeProgram) []error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	errs := make([]error, u.nodes)
	lines := &lineWriter{to: cs.Console.Err, http: httpAddressBook{announce: p.server.announce}, starting: u.nodes, next: cs.nextStep(u.root)}
	for i := range u.nodes {
		name := fmt.Sprintf("node-%d", i+1)
		args := append(u.nodeArguments(name), "--store-dir", p.state)
		if p.web != nil {
			args = append(args, "--http", p.web[i])
		}
		cmd := exec.CommandContext(ctx, p.bin, append(args, p.server.flags...)...)
		cmd.Env = append(os.Environ(), p.server.env...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = upStopGrace
		wait.Go(func() { errs[i] = runNode(cmd, name, lines) })
	}
	wait.Wait()
	if ctx.Err() != nil {
		return nil // they were stopped on purpose
	}
	return errs
}

// nodeArguments are the flags of one node.
func (u upFlags) nodeArguments(name string) []string {
	args := []string{"--name", name, "--claude-files"}
	if u.live != 0 {
		args = append(args, "--max-live-runs", fmt.Sprint(u.live))
	}
	if u.queued != 0 {
		args = append(args, "--max-queued-runs", fmt.Sprint(u.queued))
	}
	if u.requests != "" {
		args = append(args, "--requests-per-minute", u.requests)
	}
	if u.tokens != "" {
		args = append(args, "--tokens-per-minute", u.tokens)
	}
	if u.retainAge != "" {
		args = append(args, "--retain-age", u.retainAge)
	}
	if u.retainSize != "" {
		args = append(args, "--retain-size", u.retainSize)
	}
	if u.agents {
		args = append(args, "--agents-on-bus")
	}
	for _, r := range u.root {
		args = append(args, "--root", r)
	}
	for _, t := range u.trust {
		args = append(args, "--trust", t)
	}
	return args
}

// upServer is the NATS server of the nodes.
type upServer struct {
	env, flags []string // by which the nodes find it and prove it
	close      func() error
	announce   func(url string) error // records the address of a node over HTTP in node.json
}

// startServer starts a server for the nodes, unless one is given.
func (cs *Commands) startServer(u upFlags) (upServer, error) {
	var flags []string
	if u.lazy {
		flags = []string{"--durability", "lazy"}
	}
	if cs.Sessions.Conn.NamesServer() {
		return upServer{env: cs.Sessions.Conn.Environment(), flags: flags, close: func() error { return nil }, announce: func(string) error { return nil }}, nil
	}
	reportKeptRuns(cs.Console, cs.Sessions)
	e, err := cs.Sessions.StartServer.Start(localserver.Config{StateDir: statedir.StateDir(cs.Sessions.StateDir), Port: u.port, Lazy: u.lazy, ConfigHome: localserver.ConfigHome(cs.Console.Getenv),
		OpenWatch: u.open.watch, OpenControl: u.open.control, Logger: cs.Console.Logger()})
	if err != nil {
		return upServer{}, err
	}
	cs.Console.Say(term.CleanLine("NATS at " + e.URL() + "; watch with: " + e.WatchCommand() + " sub '" + names.Names{}.AllEvents() + "' --translate 'troupe fmt'"))
	cs.reportTexts()
	if line := localserver.OpenWarning(u.open.watch, u.open.control); line != "" {
		cs.Console.Say(cs.Console.ErrStyle.Yellow("warning: " + line))
	}
	return upServer{env: serverVariables(e), flags: flags, close: e.Close, announce: e.AnnounceHTTP}, nil
}
