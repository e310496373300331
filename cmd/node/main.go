// Package main is troupe-node: a node that serves run requests and resumes the unfinished
// runs of its state directory until it receives a stop signal.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/tool/mcp"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
	exitNoBus  = 6
)

func main() { os.Exit(run(os.Args[1:])) }

// run is main with an exit code.
func run(args []string) int {
	n := &nodeCommand{cfg: node.Config{ResumeAll: true}}
	c := n.command()
	c.SetArgs(args)
	err := c.Execute()
	if err == nil {
		return 0
	}
	code, hint := explain(err)
	say("error: " + node.Secrets(n.cfg).Values(err.Error()))
	if hint != "" {
		say("hint: " + hint)
	}
	return code
}

// say writes one line to stderr and escapes control characters in it. It ignores a write
// error, because there is no other place to report one.
func say(text string) { _, _ = io.WriteString(os.Stderr, term.Line(text)+"\n") }

// nodeCommand holds the flags of the command.
type nodeCommand struct {
	cfg        node.Config
	durability string
	pricing    string
	output     string
	verbose    bool
	drain      time.Duration
	setup      bool
	replicas   int
}

// drainTimeout is how long a node that received a stop signal waits for its models and
// tools; a tool may take a minute.
const drainTimeout = 75 * time.Second

func (n *nodeCommand) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "troupe-node",
		Short: "Run a troupe node",
		Long: `Run a troupe node: with a NATS server of its own, or on the one that -s, --context
or NATS_URL name. It continues the unfinished runs of its state directory.

Clients may name only directories under --root. SIGTERM or Ctrl-C stops the node in
order: what is under way comes to its end, then other nodes, or the next one on the
same state directory, go on. A second signal kills.

Exit codes: 0 stopped, 1 failed, 2 usage or configuration, 6 no NATS or JetStream.`,
		Example: `  troupe-node --root ~/src
  troupe-node --store-dir /var/lib/troupe --root /srv/repos --model anthropic/claude-sonnet-5-5
  troupe-node -s nats://n1,nats://n2,nats://n3 --nkey setup.nk --setup --replicas 3
  troupe-node -s nats://n1,nats://n2,nats://n3 --nkey node.nk --service-nkey service.nk --root /srv/repos`,
		SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("troupe-node takes no arguments, not %q", args[0])
			}
			return nil
		},
		PreRunE: func(c *cobra.Command, _ []string) error { return n.settle(c) },
		RunE:    func(*cobra.Command, []string) error { return n.serve() },
	}
	f := c.Flags()
	f.StringSliceVar(&n.cfg.Roots, "root", nil, "directory that clients may name, with all below; may be repeated")
	f.StringSliceVar(&n.cfg.Trust, "trust", nil, "directory outside of the roots whose agent files, MCP server files and scripts requests may use with the commands in them; may be repeated")
	f.StringVar(&n.cfg.StateDir, "store-dir", "", "state directory (default XDG_STATE_HOME/troupe)")
	f.IntVar(&n.cfg.Port, "nats-port", 0, "port of the embedded server (default 4222 or else a free one)")
	n.accessFlags(f)
	f.StringVar(&n.durability, "durability", "sync", "sync survives the loss of power, lazy only the death of the process; of the server of -s: whether it must sync each write")
	f.StringVar((*string)(&n.cfg.Profile), "profile", "", "do not start unless the server is seen to be this: "+profileNames())
	f.StringSliceVar(&n.cfg.Monitor, "monitor", nil, "monitoring addresses of the servers of -s (http://HOST:8222), which say whether they sync")
	sys := &n.cfg.System
	f.StringVar(&sys.Creds, "system-creds", "", "credentials file of the system account of -s, which says whether the servers sync (TROUPE_SYSTEM_CREDS)")
	f.StringVar(&sys.NKey, "system-nkey", "", "nkey seed file of the system account (TROUPE_SYSTEM_NKEY)")
	f.StringVar(&sys.User, "system-user", "", "user name of the system account (TROUPE_SYSTEM_USER)")
	f.StringVar(&sys.Password, "system-password", "", "its password (TROUPE_SYSTEM_PASSWORD)")
	f.BoolVar(&n.setup, "setup", false, "make the streams and buckets on the server of -s, and end; nodes then need no right to")
	f.IntVar(&n.replicas, "replicas", 1, "with --setup: copies of each, 3 in a cluster")
	f.DurationVar(&n.drain, "drain-timeout", drainTimeout, "how long to wait at the end for what is under way")
	f.StringVar(&n.cfg.Name, "name", "", "name of the node (default the host's)")
	f.StringSliceVar(&n.cfg.Pools, "pools", nil, "pools whose agents this node runs, on a server that nodes share (default \"default\"); with --root also that of its machine")
	f.StringVar(&n.cfg.Machine, "machine", "", "name of the machine, the same for all its nodes (default the host's)")
	f.DurationVar(&n.cfg.PoolPatience, "pool-patience", 0, "how long a pool may be without a node until its agents are given up (default 10m)")
	f.StringVarP(&n.cfg.Model, "model", "m", "", "model for runs that name none, PROVIDER/MODEL")
	f.StringVar(&n.pricing, "pricing-file", "", "prices of models, in the form of models.dev (api.json) or LiteLLM, before those listed")
	f.BoolVarP(&n.verbose, "verbose", "v", false, "log everything")
	f.StringVarP(&n.output, "output", "o", "text", "form of the ready line and the log: text, json")
	o := &n.cfg.Bus
	f.StringVarP(&o.Servers, "server", "s", "", "NATS server URLs (NATS_URL)")
	f.StringVar(&o.Context, "context", "", "nats CLI context (NATS_CONTEXT)")
	f.StringVar(&o.Creds, "creds", "", "user credentials file (NATS_CREDS)")
	f.StringVar(&o.NKey, "nkey", "", "user nkey seed file (NATS_NKEY)")
	f.StringVar(&o.User, "user", "", "user name, or token without --password (NATS_USER)")
	f.StringVar(&o.Password, "password", "", "password (NATS_PASSWORD)")
	f.StringVar(&o.Token, "token", "", "token (NATS_TOKEN)")
	d := &n.cfg.Doors
	f.StringVar(&d.Creds, "service-creds", "", "user credentials file of the connection that answers requests (TROUPE_SERVICE_CREDS)")
	f.StringVar(&d.NKey, "service-nkey", "", "nkey seed file of that connection (TROUPE_SERVICE_NKEY)")
	f.StringVar(&d.User, "service-user", "", "user name of that connection (TROUPE_SERVICE_USER)")
	f.StringVar(&d.Password, "service-password", "", "its password (TROUPE_SERVICE_PASSWORD)")
	f.DurationVar(&n.cfg.LeaseTTL, "lease-ttl", 0, "how long a node may be silent on a shared server before others take over, whole seconds (default 20s)")
	f.DurationVar(&n.cfg.ServerWait, "server-wait", 0, "how long to wait at the start until the servers of -s have leaders (default 2m)")
	f.DurationVar(&n.cfg.Linger, "linger", 0, "how long an agent that waits for a person, a child or the clock stays in memory (default 1m)")
	n.lastFlags(f, o)
	return c
}

func tlsFlags(f *pflag.FlagSet, o *bus.Options) {
	f.StringVar(&o.TLSCert, "tlscert", "", "TLS certificate (NATS_CERT)")
	f.StringVar(&o.TLSKey, "tlskey", "", "TLS private key (NATS_KEY)")
	f.StringVar(&o.TLSCA, "tlsca", "", "TLS certificate authority (NATS_CA)")
}

// errConfig marks errors in the configuration that the operator must fix.
var errConfig = errors.New("configuration")

// settled reports whether a flag was given, or this program has no flag of that name.
func settled(c *cobra.Command) func(string) bool {
	return func(flag string) bool {
		f := c.Flags().Lookup(flag)
		return f == nil || f.Changed
	}
}

// settle applies the settings and checks the arguments.
func (n *nodeCommand) settle(c *cobra.Command) error {
	found, err := config.Load(config.Places{Dir: ".", Settled: settled(c)})
	if err != nil {
		return err
	}
	for key, target := range map[string]*string{"model": &n.cfg.Model, "store_dir": &n.cfg.StateDir, "pricing_file": &n.pricing} {
		s, ok := found[key]
		if ok && !c.Flags().Changed(s.Flag()) {
			*target = s.Value
		}
	}
	if err := n.settleRuns(c, found); err != nil {
		return err
	}
	if n.cfg.Prices, err = catalog.Load(n.pricing); err != nil {
		return fmt.Errorf("%w: --pricing-file: %w", errConfig, err)
	}
	hooks, notes, err := agentfile.Hooks(config.UserFile())
	if err != nil {
		return fmt.Errorf("%w: %w", errConfig, err)
	}
	for _, note := range notes {
		say("note: " + note.String())
	}
	own, err := agentfile.Share(config.UserFile())
	if err != nil {
		return fmt.Errorf("%w: %w", errConfig, err)
	}
	n.cfg.Hooks, n.cfg.Tools = hooks, own.Tools
	n.cfg.Servers = filepath.Join(filepath.Dir(config.UserFile()), mcp.UserFileName)
	if err := n.checkDurability(); err != nil {
		return err
	}
	if n.output != "text" && n.output != "json" {
		return fmt.Errorf("%w: -o is text or json, not %q", errConfig, n.output)
	}
	if n.cfg.Port < embedded.FreePort || n.cfg.Port > 1<<16-1 {
		return fmt.Errorf("%w: --nats-port %d is no port", errConfig, n.cfg.Port)
	}
	for flag, dirs := range map[string][]string{"--root": n.cfg.Roots, "--trust": n.cfg.Trust} {
		if err := completeDirs(flag, dirs); err != nil {
			return err
		}
	}
	n.cfg.Bus = n.cfg.Bus.FromEnv(os.Getenv)
	if err := n.checkAccess(); err != nil {
		return err
	}
	if err := n.checkPools(); err != nil {
		return err
	}
	for prefix, o := range map[string]*bus.Options{"TROUPE_SERVICE_": &n.cfg.Doors, "TROUPE_SYSTEM_": &n.cfg.System} {
		for name, field := range map[string]*string{"CREDS": &o.Creds, "NKEY": &o.NKey, "USER": &o.User, "PASSWORD": &o.Password} {
			*field = cmp.Or(*field, os.Getenv(prefix+name))
		}
	}
	if p := n.cfg.Profile; p != "" && !slices.Contains(bus.Profiles(), p) {
		return fmt.Errorf("%w: --profile is one of %s, not %q", errConfig, profileNames(), p)
	}
	n.cfg.Logger = n.logger()
	if n.setup && !n.cfg.Bus.Given() {
		return fmt.Errorf("%w: --setup needs a server: -s or --context", errConfig)
	}
	return nil
}

func (n *nodeCommand) logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if n.verbose {
		options.Level = slog.LevelDebug
	}
	if n.output == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

// serve runs the node until a signal.
func (n *nodeCommand) serve() error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopping := make(chan struct{})
	go func() {
		first := <-signals
		cancel() // of a start in progress
		close(stopping)
		<-signals
		os.Exit(code(first))
	}()
	if n.setup {
		if err := node.Setup(ctx, n.cfg, n.replicas); err != nil {
			return fmt.Errorf("%w: setup: %w", errRun, err)
		}
		return nil
	}
	n.cfg.Rules = spec.Rules + younger
	h, err := node.Start(ctx, n.cfg)
	if err != nil && ctx.Err() != nil {
		return nil // it received the signal before it had started
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errRun, err)
	}
	if err := n.ready(h); err != nil {
		return fmt.Errorf("%w: %w", errRun, errors.Join(err, h.Close()))
	}
	<-stopping
	n.cfg.Logger.Info("stopping: what is under way comes to its end, and others go on with the rest", "within", n.drain)
	patience, enough := context.WithTimeout(context.Background(), n.drain)
	defer enough()
	if err := h.Drain(patience); err != nil {
		n.cfg.Logger.Warn("something is still under way; what nobody can know of it goes to a person", "error", err)
	}
	if err := h.Close(); err != nil {
		return fmt.Errorf("%w: %w", errRun, err)
	}
	return nil
}

func profileNames() string {
	var names []string
	for _, p := range bus.Profiles() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

// code of a process that a signal killed.
func code(s os.Signal) int {
	if s == syscall.SIGTERM {
		return 128 + int(syscall.SIGTERM)
	}
	return 128 + int(syscall.SIGINT)
}

// ready reports on stdout that the node answers requests, and at which address.
func (n *nodeCommand) ready(h *node.Node) error {
	url, where := h.URL(), ""
	if url == "" {
		url = cmp.Or(n.cfg.Bus.Servers, n.cfg.Bus.Owner, "context "+n.cfg.Bus.Context)
	} else {
		where = statedir.StateDir(n.cfg.StateDir)
	}
	if watch := h.Watch(); watch != "" {
		say("watch with: " + watch + " sub '" + names.Names{}.Events() + "' --translate 'troupe fmt'")
	}
	if line := embedded.OpenWarning(n.cfg.OpenWatch, n.cfg.OpenControl); line != "" {
		say("warning: " + line)
	}
	line := "ready " + url
	if where != "" {
		line += " store " + where
	}
	line += " profile " + h.Proof().String()
	if n.output == "json" {
		raw, err := json.Marshal(map[string]any{"type": "ready", "url": url, "store_dir": where, "watch": h.Watch(), "pid": os.Getpid(),
			"roots": n.cfg.Roots, "durability": n.durability, "proof": h.Proof()})
		if err != nil {
			return fmt.Errorf("ready: %w", err)
		}
		line = string(raw)
	}
	if _, err := fmt.Println(line); err != nil {
		return fmt.Errorf("ready: %w", err)
	}
	return nil
}

// explain gives an error its code and a remedy.
func explain(err error) (code int, hint string) {
	switch {
	case errors.Is(err, statedir.ErrOwned):
		return exitNoBus, "another node or a troupe run has the state directory; use another --store-dir"
	case errors.Is(err, statedir.ErrNewer):
		return exitNoBus, "install the newer troupe; this one has touched nothing"
	case errors.Is(err, bus.ErrNoLeader):
		return exitNoBus, "start the other servers: a leader needs more than half of them; --server-wait waits longer"
	case errors.Is(err, shard.ErrTTL):
		return exitUsage, "give a longer --lease-ttl, or a faster disk to the servers"
	case errors.Is(err, bus.ErrNoJetStream):
		return exitNoBus, "enable JetStream on the server (nats-server -js) or for this account"
	case errors.Is(err, bus.ErrUnfit):
		return exitNoBus, "docs/profiles.md says what each profile needs; --durability lazy promises less"
	case errors.Is(err, bus.ErrCredentials):
		return exitNoBus, "give --creds, --nkey, --user or --token, or a --context of the nats CLI"
	case errors.Is(err, statedir.ErrNoServer):
		return exitNoBus, "start it, name another with -s, or leave -s out for a server in process"
	case errors.Is(err, statedir.ErrUntrusted):
		return exitNoBus, "choose another --store-dir; close this one with chmod 700 only if you trust all who could write in it"
	case errors.Is(err, statedir.ErrStateDir):
		return exitNoBus, "close it to others with chmod 700, or use another --store-dir"
	case errors.Is(err, embedded.ErrStart):
		return exitNoBus, "another --nats-port or --store-dir may help; -v shows what the server says"
	case errors.Is(err, config.ErrSetting), errors.Is(err, errConfig):
		return exitUsage, "troupe-node --help lists the flags"
	case errors.Is(err, errRun):
		return exitFailed, ""
	}
	return exitUsage, "troupe-node --help lists the flags"
}

// errRun marks errors that occur while the node runs.
var errRun = errors.New("node")
