// Package host puts a whole node into a process: the bus, the durable logs,
// the actors and the doors. cmd/node and the in-process node of cmd/cli are
// this and their flags.
package host

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/hook"
	"github.com/troupe-run/troupe/mailbox/jetstream"
	"github.com/troupe-run/troupe/model/catalog"
	"github.com/troupe-run/troupe/tool/mcp"
	"github.com/troupe-run/troupe/tool/proc"
)

// errPrograms is what Close returns where something that a tool or hook started could not be ended in time.
var errPrograms = errors.New("host: a program of a tool or hook still runs; look for it by the name of its command")

// Config of a Host. The zero value is an embedded server in the user's state
// directory, without any directory that clients may name.
type Config struct {
	// Bus is an external NATS; if none is Given, the server is embedded.
	Bus bus.Options
	// Doors are credentials of the connection that answers requests, on the same
	// server: they should not allow writing logs, leases and events. Default: Bus.
	Doors bus.Options
	// StateDir of the embedded server. Default XDG_STATE_HOME/troupe.
	StateDir string
	// Port of the embedded server: 0 is 4222 or else a free one.
	Port int
	// Lazy gives up durability against the death of the machine.
	Lazy bool
	// DontListen: the embedded server has no port and no socket. NoPort: it has only
	// the socket, for commands of the same user.
	DontListen, NoPort bool
	// ConfigHome is where the embedded server writes the nats CLI context of
	// observers. Default: the state directory.
	ConfigHome string
	// OpenWatch and OpenControl: on the embedded server, who has no credential may
	// read events, or ask for verbs as well.
	OpenWatch, OpenControl bool
	// Profile is what the server must be seen to promise, or the node does not
	// start. Default: whichever profile it has, as far as it can be seen.
	Profile bus.Profile
	// System is a credential of the system account of an external server, and
	// Monitor are the monitoring addresses of its servers: either says whether they
	// sync what they store. Default: then it stays unproven.
	System  bus.Options
	Monitor []string
	// Roots are the directories that clients may name.
	Roots []string
	// Trust are places whose agent files, files of MCP servers and scripts requests
	// may name with all that these bring: command lines, hooks, programs. None may
	// lie in a root, where runs write.
	Trust []string
	// Upward lets a project's instructions be read above the directory that a run
	// names, up to the top of its repository: for a node of the user's own process.
	Upward bool
	// Name of the node. Default: the host's name.
	Name string
	// Pools whose agents this node runs, on a server that others share. Default
	// "default", and that of the machine if there are Roots.
	Pools []string
	// Machine names the pool of the runs that have a directory here: all nodes of
	// one machine must have the same. Default: the host's name.
	Machine string
	// PoolPatience is how long a pool may be without a node until its agents are
	// given up. Default PoolPatienceDefault.
	PoolPatience time.Duration
	// LeaseTTL is how long a node may be silent on a server that others share
	// before they take over what it held: whole seconds. Default shard.TTLDefault.
	LeaseTTL time.Duration
	// ServerWait is how long the start waits until JetStream, its streams and buckets have
	// leaders, on a server that others share. Default ServerWaitDefault.
	ServerWait time.Duration
	// At most MaxLiveRuns runs are live here, MaxQueuedRuns wait. Default: the constants.
	MaxLiveRuns, MaxQueuedRuns int
	// Linger is how long who waits stays in memory. Default actors.LingerDefault.
	Linger time.Duration
	// Model is the route to use when a request names none ("provider/model").
	Model string
	// Prices is the operator's word on what models cost and take (catalog.Load).
	Prices catalog.Table
	// Tools is the operator's word on tools: it goes over what they say themselves.
	Tools []agentfile.ToolRule
	// Servers is the file in which the operator names MCP servers. Default none.
	Servers string
	// Env reads the environment. Default os.Getenv.
	Env func(string) string
	// Record is a directory to keep the exchanges with models in, as the wire had
	// them; Replay is one to play them from, without keys or network. At most one.
	Record, Replay string
	// Environ is the whole environment, NAME=value: the values of names that speak
	// of secrets are masked wherever they would get out. Default os.Environ, if Env
	// is the default, too.
	Environ []string
	// Hooks are the operator's own, for every agent of every run. Those that name
	// no command are functions of GoHooks.
	Hooks   []agent.Hook
	GoHooks map[string]hook.Func
	// Own is what the program that embeds the node brings.
	Own Own
	// Rules are the newest that this node knows. Default: agent.Rules; tests have
	// old and new nodes side by side by it.
	Rules int
	// Bare leaves out of events what people, models and tools said.
	Bare bool
	// ResumeAll continues every unfinished run; otherwise only those that are
	// asked for.
	ResumeAll bool
	// ownHand: requests come from the user's own hand in this process, so what they
	// name is the user's word.
	ownHand bool
	// Still runs nothing: logs are read for those who ask, and commands are
	// appended for the next owner.
	Still  bool
	Logger *slog.Logger // default: discard
}

// Host is a running node.
type Host struct {
	cfg      Config
	names    bus.Names
	embedded *bus.Embedded
	owner    *nats.Conn // logs, index
	reader   *nats.Conn
	teller   *nats.Conn // events: the server copies each to every observer before it reads on
	telling  *telling
	leases   *nats.Conn // where there are any: a renewal must not queue behind appends
	doors    *nats.Conn // answers requests; may not write logs
	post     *jetstream.Post
	blobs    *jetstream.Blobs
	node     *actors.Node
	programs proc.Programs // that tools and hooks of the node run
	control  *gateway.Control
	runs     *gateway.Runs
	models   *models
	tapes    tapes
	exits    exits
	places   places
	hub      *mcp.Hub       // nil: none is started
	inside   []*nats.Conn   // of clients in this process
	writing  sync.WaitGroup // rows of the index, and runs that are taken up
	holding  holding
	gates    *gates
	census   census
	journal  journal // whether the logs can be written
	runsHere admission
	refused  atomic.Pointer[error] // the last right that the server did not give
	proof    bus.Proof             // of what the server promises
	life     context.Context       // until Close
	end      context.CancelFunc
}

// ErrOwned is bus.ErrOwned: another process has the state directory.
var ErrOwned = bus.ErrOwned

const openTimeout = 30 * time.Second

// Start starts a node. The caller must Close it.
func Start(ctx context.Context, cfg Config) (*Host, error) {
	cfg = cfg.withDefaults()
	own, err := cfg.Own.complete()
	if err != nil {
		return nil, err
	}
	cfg.Own = own
	names, err := bus.NewNames("")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(cfg.checkPowers(), cfg.checkTrust(), cfg.checkRunLimits()); err != nil {
		return nil, err
	}
	out := exits{cfg.secrets()}
	cfg.Logger = slog.New(cleanLog{cfg.Logger.Handler(), out})
	tapes, err := openTapes(cfg, out)
	if err != nil {
		return nil, err
	}
	h := &Host{cfg: cfg, names: names, models: newModels(cfg, tapes, out), tapes: tapes, exits: out, places: places{tape: tapes.dir, trusted: trustedDirs(cfg.StateDir)}}
	h.telling = newTelling(h.tell, cfg.Logger)
	h.journal.h = h
	h.life, h.end = context.WithCancel(context.WithoutCancel(ctx))
	h.hub = mcp.New(mcp.Config{Getenv: cfg.Env, Logger: cfg.Logger})
	if err := h.open(ctx); err != nil {
		return nil, errors.Join(h.denied(err), h.Close())
	}
	return h, nil
}

func (c Config) withDefaults() Config {
	if c.Rules == 0 {
		c.Rules = agent.Rules
	}
	c.Environ = environ(c)
	if c.Env == nil {
		c.Env = os.Getenv
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Machine == "" {
		c.Machine, _ = os.Hostname() // empty without one
	}
	c.Name = cmp.Or(c.Name, c.Machine) // else the default of actors holds
	c.Pools = c.served()
	c.PoolPatience = cmp.Or(c.PoolPatience, PoolPatienceDefault)
	c.ServerWait = cmp.Or(c.ServerWait, ServerWaitDefault)
	return c
}

func (h *Host) open(ctx context.Context) error {
	if err := h.connect(); err != nil {
		return err
	}
	if err := h.cfg.approveModel(h.tapes); err != nil { // now that the state directory is there, and closed to others
		return err
	}
	buckets, err := h.openStores(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := h.prove(ctx); err != nil {
		return err
	}
	if h.blobs, err = jetstream.OpenBlobs(ctx, h.owner, buckets.Blobs, h.names); err != nil {
		return err
	}
	h.runs = gateway.OpenRuns(buckets)
	cfg := actors.Config{Name: h.cfg.Name, Post: h.logs(), Model: h.models.client, Tools: h.tools, Differs: h.differs, Rules: h.cfg.Rules, Foreign: h.foreign, Hooks: h.goHooks(),
		Blobs: cleanBlobs{h.blobs, h.exits}, Events: h.publish, Over: h.over, Linger: h.cfg.Linger, Logger: h.cfg.Logger}
	if h.cfg.Still {
		cfg.Post = still{h.logs()}
	}
	cfg.Gate = h.models.gate
	if h.gates, err = h.shareGates(buckets); err != nil {
		return err
	}
	cfg.Told = h.gates.told
	if err := h.hold(ctx, buckets, &cfg); err != nil {
		return err
	}
	h.census.hear(&cfg)
	h.limitRuns(&cfg)
	if h.node, err = actors.Start(h.programs.In(context.Background()), cfg); err != nil {
		return err
	}
	h.writing.Go(func() { h.gates.run(h.life) })
	if err := h.keepShards(ctx); err != nil {
		return err
	}
	h.control, err = gateway.Serve(gateway.Config{Conn: h.doors, Names: h.names, Post: h.logs(), Node: h.node, Runs: h.runs, Blobs: h.blobs,
		Build: h.build, Journal: h.journal.info, Queue: h.runsHere.queueView(), Cluster: h.cluster(), Self: h.self, Name: h.cfg.Name, Machine: h.cfg.Machine, Bare: h.cfg.Bare, Clean: h.exits.bytes, Logger: h.cfg.Logger})
	if err != nil {
		return err
	}
	if h.holding.buckets != nil {
		return nil // what it gains it takes up
	}
	if h.cfg.ResumeAll {
		return h.takeUp(ctx)
	}
	return nil
}

// connect opens the three connections: an embedded server's own, or to an
// external server with the given credentials.
func (h *Host) connect() error {
	// Without a handler the library writes to stderr what an observer can bring
	// about: a reply to where we may not publish.
	quiet := nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		h.cfg.Logger.Debug("the connection says", "error", err)
		if errors.Is(err, nats.ErrPermissionViolation) {
			h.refused.Store(&err)
		}
	})
	dial := func(r bus.Role) (*nats.Conn, error) {
		o := h.cfg.Bus
		o.InboxPrefix = cmp.Or(o.InboxPrefix, bus.InboxPrefix(r))
		if d := h.cfg.Doors; r == bus.RoleService && (d.Creds != "" || d.NKey != "" || d.User != "" || d.Token != "") {
			o.Creds, o.NKey, o.User, o.Password, o.Token = d.Creds, d.NKey, d.User, d.Password, d.Token
			o.InboxPrefix = cmp.Or(d.InboxPrefix, bus.InboxPrefix(r))
		}
		o.Extra = append(slices.Clone(o.Extra), quiet)
		return bus.Connect(o)
	}
	if !h.cfg.Bus.Given() {
		e, err := bus.StartEmbedded(bus.EmbeddedConfig{StateDir: bus.StateDir(h.cfg.StateDir), Port: h.cfg.Port,
			DontListen: h.cfg.DontListen, NoPort: h.cfg.NoPort, ConfigHome: h.cfg.ConfigHome, OpenWatch: h.cfg.OpenWatch, OpenControl: h.cfg.OpenControl,
			Lazy: h.cfg.Lazy, Names: h.names, Disk: h.journal.diskStands, Logger: h.cfg.Logger})
		if err != nil {
			return err
		}
		h.embedded = e
		dial = func(r bus.Role) (*nats.Conn, error) { return e.Connect(r, quiet) }
	}
	var err error
	if h.owner, err = dial(bus.RoleNode); err != nil {
		return err
	}
	if h.reader, err = dial(bus.RoleNode); err != nil {
		return err
	}
	if h.teller, err = dial(bus.RoleNode); err != nil {
		return err
	}
	if h.leases, err = dial(bus.RoleNode); err != nil {
		return err
	}
	h.doors, err = dial(bus.RoleService)
	return err
}

// Resume continues one run.
func (h *Host) Resume(ctx context.Context, run string) error { return h.node.Resume(ctx, run) }

// URL is where the embedded server listens; "" for an external one.
func (h *Host) URL() string {
	if h.embedded == nil {
		return ""
	}
	return h.embedded.URL()
}

// Client is a client inside the process.
func (h *Host) Client() (*client.Client, error) {
	connect := func() (*nats.Conn, error) { return h.embedded.Connect(bus.RoleClient) }
	if h.embedded == nil {
		o := h.cfg.Bus
		o.InboxPrefix = cmp.Or(o.InboxPrefix, bus.NodeClientInbox)
		connect = func() (*nats.Conn, error) { return bus.Connect(o) }
	}
	nc, err := connect()
	if err != nil {
		return nil, err
	}
	h.inside = append(h.inside, nc)
	return client.New(nc, h.names), nil
}

// Close stops the node. What was under way is taken up from the logs by the
// next owner.
func (h *Host) Close() (err error) {
	var errs []error
	defer func() { err = errors.Join(err, h.tapes.close()) }() // when nobody asks any more
	if h.control != nil {
		errs = append(errs, h.control.Close())
	}
	if h.node != nil {
		h.node.Stop()
	}
	if !h.programs.Wait(proc.EndMax) {
		errs = append(errs, errPrograms)
	}
	h.runsHere.close()
	h.hub.Close()
	h.end()
	h.giveShards()
	h.writing.Wait()
	errs = append(errs, h.places.close())
	if h.post != nil {
		errs = append(errs, h.post.Close())
	}
	if h.teller != nil {
		h.telling.close()
	}
	for _, nc := range append(h.inside, h.doors, h.leases, h.reader, h.owner, h.teller) {
		if nc != nil {
			nc.Close()
		}
	}
	if h.embedded != nil {
		errs = append(errs, h.embedded.Close())
	}
	return errors.Join(errs...)
}
