// Package node puts a whole node into a process: the bus, the durable logs, the actors and
// the control service. cmd/node and the in-process node of cmd/cli only add their flags.
package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cluster"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/process"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/routes"
	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/workspace"
	"github.com/troupe-run/troupe/mailbox/jetstream"
	"github.com/troupe-run/troupe/tool/mcp"
)

// errPrograms is the error of Close if a process that a tool or hook started could not be ended in time.
var errPrograms = errors.New("host: a program of a tool or hook still runs; look for it by the name of its command")

// Node is a running node.
type Node struct {
	cfg         Config
	names       names.Names
	embedded    *embedded.Server
	owner       *nats.Conn // logs, index
	reader      *nats.Conn
	teller      *nats.Conn // events: the server copies each to every observer before it reads on
	telling     *telling
	leases      *nats.Conn // if there are leases: a renewal must not queue behind appends
	doors       *nats.Conn // answers requests; may not write logs
	post        *jetstream.Post
	blobs       *jetstream.Blobs
	node        *actors.Node
	programs    process.Programs // that tools and hooks of the node run
	control     *control.Control
	runs        *control.Runs
	toolset     *toolset.Builder
	builder     *runspec.Builder
	routes      *routes.Resolver
	recordings  routes.Recordings
	mask        *redact.Masker // of all that leaves the process
	directories *workspace.Directories
	hub         *mcp.Hub       // nil: none is started
	inside      []*nats.Conn   // of clients in this process
	writing     sync.WaitGroup // writes of index rows, and runs that are being taken up
	logOwner    *cluster.Owner // decides on which logs this node acts
	gates       *gates
	journal     journal               // whether the logs can be written
	refused     atomic.Pointer[error] // the last right that the server refused
	proof       bus.Proof             // the checks of the server's promises
	life        context.Context       // until Close
	end         context.CancelFunc
}

// ErrOwned is statedir.ErrOwned: another process has the state directory.
var ErrOwned = statedir.ErrOwned

const openTimeout = 30 * time.Second

// Start starts a node. The caller must Close it.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	own, err := cfg.Own.complete()
	if err != nil {
		return nil, err
	}
	cfg.Own = own
	names, err := names.NewNames("")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(toolset.Check(cfg.Tools), cfg.trust().Check(), cluster.CheckRunLimits(cfg.MaxLiveRuns, cfg.MaxQueuedRuns)); err != nil {
		return nil, err
	}
	mask := cfg.secrets()
	cfg.Logger = slog.New(redact.Handler{Handler: cfg.Logger.Handler(), Mask: mask})
	recordings, err := routes.OpenRecordings(cfg.Record, cfg.Replay, mask)
	if err != nil {
		return nil, err
	}
	h := &Node{cfg: cfg, names: names, routes: cfg.newRoutes(recordings), recordings: recordings, mask: mask,
		directories: workspace.New(cfg.StateDir, recordings.Dir())}
	h.telling = newTelling(h.tell, cfg.Logger)
	h.journal.h = h
	h.life, h.end = context.WithCancel(context.WithoutCancel(ctx))
	h.hub = mcp.New(mcp.Config{Getenv: cfg.Env, Logger: cfg.Logger})
	if err := h.open(ctx); err != nil {
		return nil, errors.Join(h.denied(err), h.Close())
	}
	return h, nil
}

func (h *Node) open(ctx context.Context) error {
	if err := h.connect(); err != nil {
		return err
	}
	if err := h.cfg.approveModel(h.recordings); err != nil { // now the state directory exists, closed to others
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
	h.runs = control.OpenRuns(buckets)
	h.logOwner = h.newOwner()
	h.assemble()
	cfg := actors.Config{Name: h.cfg.Name, Post: h.logs(), Model: h.routes.Client, Tools: h.toolset.Set, Differs: h.builder.Differences, Rules: h.cfg.Rules, Foreign: h.logOwner.Foreign, Hooks: h.goHooks(),
		Blobs: redact.Blobs{Blobs: h.blobs, Mask: h.mask}, Events: h.publish, Over: h.over, Linger: h.cfg.Linger, Logger: h.cfg.Logger}
	if h.cfg.Still {
		cfg.Post = still{h.logs()}
	}
	cfg.ThrottleOf = h.routes.Gate
	if h.gates, err = h.shareGates(buckets); err != nil {
		return err
	}
	cfg.TellNotice = h.gates.told
	if err := h.logOwner.Hold(ctx, buckets, &cfg); err != nil {
		return err
	}
	h.logOwner.Listen(&cfg)
	if h.node, err = actors.Start(h.programs.In(context.Background()), cfg); err != nil {
		return err
	}
	h.writing.Go(func() { h.gates.run(h.life) })
	if err := h.logOwner.KeepShards(ctx); err != nil {
		return err
	}
	h.control, err = control.Serve(control.Config{Conn: h.doors, Names: h.names, Post: h.logs(), Node: h.node, Runs: h.runs, Blobs: h.blobs,
		Build: h.build, Journal: h.journal.info, Queue: h.logOwner.Queue(), Cluster: h.logOwner.View(), Self: h.self, Name: h.cfg.Name, Machine: h.cfg.Machine, Bare: h.cfg.Bare, Clean: h.mask.Bytes, Logger: h.cfg.Logger})
	if err != nil {
		return err
	}
	if h.logOwner.IsShared() {
		return nil // it takes up the runs of the shards that it gains
	}
	if h.cfg.ResumeAll {
		return h.logOwner.TakeUp(ctx)
	}
	return nil
}

// connect opens the three connections: an embedded server's own, or to an
// external server with the given credentials.
func (h *Node) connect() error {
	// Without a handler the library writes to stderr an error that an observer can cause: a
	// reply to a subject to which this node may not publish.
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
		e, err := embedded.Start(embedded.Config{StateDir: statedir.StateDir(h.cfg.StateDir), Port: h.cfg.Port,
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

// Resume resumes one run.
func (h *Node) Resume(ctx context.Context, run string) error { return h.node.Resume(ctx, run) }

// URL returns the address of the embedded server; "" for an external one.
func (h *Node) URL() string {
	if h.embedded == nil {
		return ""
	}
	return h.embedded.URL()
}

// Client is a client inside the process.
func (h *Node) Client() (*client.Client, error) {
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

// Close stops the node. The next owner takes up the work in progress from the logs.
func (h *Node) Close() (err error) {
	var errs []error
	defer func() { err = errors.Join(err, h.recordings.Close()) }() // after the last model call
	if h.control != nil {
		errs = append(errs, h.control.Close())
	}
	if h.node != nil {
		h.node.Stop()
	}
	if !h.programs.Wait(process.EndMax) {
		errs = append(errs, errPrograms)
	}
	if h.logOwner != nil {
		h.logOwner.StopQueue()
	}
	h.hub.Close()
	h.end()
	if h.logOwner != nil {
		h.logOwner.Close()
	}
	h.writing.Wait()
	errs = append(errs, h.directories.Close())
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
