// Package node puts a whole node into a process: the bus, the durable logs, the actors and
// the control service. Packages internal/cli/serve, internal/cli/session and troupe start one.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/agentprotocol"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cluster"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/guardrail"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/process"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/routes"
	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/internal/telemetry"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/workspace"
	"github.com/troupe-run/troupe/mailbox"
)

// errPrograms is the error of Close if a process that a tool or hook started could not be ended in time.
var errPrograms = errors.New("node: a program of a tool or hook still runs; look for it by the name of its command")

// Node is a running node.
type Node struct {
	cfg             Config
	began           time.Time
	names           names.Names
	embedded        localserver.Server
	logConn         *nats.Conn // logs, index
	readerConn      *nats.Conn
	eventConn       *nats.Conn // events: the server copies each to every observer before it reads on
	events          *eventOutlet
	leaseConn       *nats.Conn // shard leases: a renewal must not queue behind appends
	serviceConn     *nats.Conn // answers requests; may not write logs
	post            mailbox.Store
	streams         *jetstream.Post // post, if the logs are in JetStream; otherwise nil
	blobs           *jetstream.Blobs
	answers         natsjs.Consumer // of answers that wait for a node; nil: none do
	actorNode       *actors.Node
	programs        process.ProgramCounter // that tools and hooks of the node run
	control         *control.Control
	http            atomic.Pointer[httpapi.Server] // nil: the node serves no HTTP, or not yet
	agentHost       *agentprotocol.Host            // nil: no agent is exported
	runs            *runindex.Index
	indexWriter     *indexWriter               // of rows of runs
	watch           *runWatch                  // what operators see of the runs
	spans           *telemetry.Exporter        // nil: they are not exported
	metricsExporter *telemetry.MetricsExporter // nil: no receiver is known
	toolset         *toolset.Builder
	builder         *runspec.Builder
	routes          *routes.Resolver
	agents          agentCatalog // that the node offers
	recordings      routes.Recordings
	mask            *redact.Masker // of all that leaves the process
	directories     *workspace.Directories
	mcpHub          *mcpclient.Hub // connections to MCP servers
	a2a             *a2aclient.Caller
	localConns      []*nats.Conn // of clients in this process; guarded by localMu
	localMu         sync.Mutex
	background      sync.WaitGroup // goroutines that Close waits for
	logOwner        *cluster.Owner // decides on which logs this node acts
	throttles       *throttleSync
	lanes           laneNews
	logHealth       logHealth             // whether the logs can be written
	closed          closedConns           // connections that are closed for good
	lastDenied      atomic.Pointer[error] // the last right that the server refused
	cancelStart     context.CancelFunc    // of a start that cannot succeed
	serverProof     bus.Proof             // the checks of the server's promises
	// httpToken is the credential of http; httpTokenFresh: no state directory has it yet.
	httpToken      string
	httpTokenFresh bool
	lifetime       context.Context // until Close
	endLifetime    context.CancelFunc
}

// ErrOwned is statedir.ErrOwned: another process has the state directory.
var ErrOwned = statedir.ErrOwned

const openTimeout = 30 * time.Second

// Start starts a node. The caller must Close it.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	own, err := cfg.Contributions.checkAndComplete(len(cfg.Roots) > 0)
	if err != nil {
		return nil, err
	}
	cfg.Contributions = own
	guardrails, err := guardrail.Hooks(cfg.Guardrails)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContribution, err)
	}
	cfg.Hooks = slices.Concat(cfg.Hooks, guardrails)
	for _, h := range cfg.Hooks {
		if err := h.Validate(); err != nil {
			return nil, fmt.Errorf("node: %w", err)
		}
	}
	names, err := names.NewNames("")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(cfg.checkName(), toolset.CheckRules(cfg.Tools), cfg.RequestRates.Check(), cfg.TokenRates.Check(), cfg.trustPolicy().CheckPlaces(), checkEventsContent(cfg.EventsContent), cluster.CheckRunLimits(cfg.MaxLiveRuns, cfg.MaxQueuedRuns)); err != nil {
		return nil, err
	}
	token, fresh, err := cfg.httpToken()
	if err != nil {
		return nil, err
	}
	mask := cfg.newMasker(token)
	cfg.Logger = slog.New(redact.Handler{Handler: cfg.Logger.Handler(), Mask: mask})
	recordings, err := routes.OpenRecordings(cfg.Record, cfg.Replay, mask)
	if err != nil {
		return nil, err
	}
	h := &Node{cfg: cfg, began: time.Now(), names: names, routes: cfg.newRoutes(recordings), recordings: recordings, mask: mask,
		directories: workspace.New(cfg.StateDir, recordings.Dir()), httpToken: token, httpTokenFresh: fresh}
	h.agents = agentCatalog{cfg, h.routes}
	h.events = newEventOutlet(h)
	h.watch = newRunWatch(cfg.Logger, h.newRecorder())
	h.logHealth.node = h
	h.lifetime, h.endLifetime = context.WithCancel(context.WithoutCancel(ctx))
	h.indexWriter = newIndexWriter(h)
	h.mcpHub = mcpclient.New(mcpclient.Config{Getenv: cfg.Env, Logger: cfg.Logger})
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	h.cancelStart = cancel
	err = h.startComponents(starting)
	if err == nil {
		err = h.serveHTTP()
	}
	if err == nil {
		err = exportAgents(h)
	}
	if err != nil {
		return nil, errors.Join(h.closed.check(), h.explainDenied(err), h.Close())
	}
	return h, nil
}

func (n *Node) startComponents(ctx context.Context) error {
	system := prepareSystem() // while the server and the stores wait for the disk
	if err := n.startServerAndConnect(); err != nil {
		return err
	}
	if err := n.cfg.approveModel(n.recordings); err != nil { // now the state directory exists, closed to others
		return err
	}
	buckets, err := openStorage(ctx, n)
	if err != nil {
		return err
	}
	if err := startSpans(n); err != nil {
		return err
	}
	err = n.awaitLeaders(ctx, func(ctx context.Context) (err error) {
		n.blobs, err = jetstream.OpenBlobs(ctx, n.logConn, buckets.Blobs, n.names)
		return err
	})
	if err != nil {
		return err
	}
	n.runs = runindex.Open(buckets)
	if n.runs.LogStore = statedir.LogsInJetStream; n.embedded != nil {
		n.runs.LogStore = n.embedded.LogStore()
	}
	var rowAdded func(string)
	if n.embedded != nil {
		n.runs.OwnAlone()
		rowAdded = n.indexWriter.recordAdded
	}
	n.logOwner = n.newOwner()
	n.assembleBuilders()
	cfg := actors.Config{Name: n.cfg.Name, System: system, Post: n.redactedLogs(), Model: n.routes.ResolveClient, Tools: n.toolset.MakeSet, Differs: n.builder.FindDifferences, OnNewerLog: n.logOwner.PassNewerShard, OnOtherLog: n.lanes.addLog, Hooks: n.cfg.allGoHooks(), HookEnv: n.cfg.envOfCommands,
		Blobs: redact.Blobs{Blobs: n.blobs, Mask: n.mask}, OnEvent: n.events.queueEvent, OnRunChanged: n.indexWriter.recordState, OnResult: n.indexWriter.recordResult, IdleTimeout: n.cfg.IdleTimeout, Logger: n.cfg.Logger}
	if n.cfg.NoActors {
		cfg.Post = passiveStore{n.redactedLogs()}
	}
	cfg.ThrottleOf, cfg.Rates = n.routes.ThrottleName, n.routes.RatesOf
	if n.throttles, err = n.newThrottleSync(buckets); err != nil {
		return err
	}
	cfg.PublishNotice = n.throttles.queueNotice
	err = n.awaitLeaders(ctx, func(ctx context.Context) error { return n.logOwner.ConfigureActors(ctx, buckets, &cfg) })
	if err != nil {
		return err
	}
	n.logOwner.ObserveActors(&cfg)
	traceActors(n.spans, &cfg)
	countActors(n.watch.metrics, &cfg)
	if n.actorNode, err = actors.Start(n.programs.CountIn(context.Background()), cfg); err != nil {
		return err
	}
	n.background.Go(func() { n.throttles.run(n.lifetime) })
	if err := n.awaitLeaders(ctx, n.logOwner.KeepShards); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := serveControl(ctx, n, rowAdded, holdsLog(cfg)); err != nil {
		return err
	}
	return startMetrics(n)
}

// serveControl answers requests, and takes up what other processes have left.
func serveControl(ctx context.Context, n *Node, rowAdded func(string), holds func(mailbox.Address) bool) error {
	triggers, err := bus.NewTriggers(n.readerConn, n.names)
	if err != nil {
		return err
	}
	stays := n.cfg.ResumeAll && !n.cfg.NoActors || n.logOwner.IsShared()
	n.control, err = control.Serve(withRestore(n, control.Config{Conn: n.serviceConn, Names: n.names, Post: n.requestLogs(), Node: n.actorNode, Runs: n.runs, Blobs: n.blobs,
		Build: n.buildRun, RowAdded: rowAdded, LogHealth: n.logHealth.clientInfo, Queue: n.logOwner.QueueView(), Cluster: n.logOwner.ClusterView(), Self: n.describeSelf, Inspect: inspectCluster(n), Name: n.cfg.Name, Machine: n.cfg.Machine, NoActors: n.cfg.NoActors, Redact: n.mask.MaskBytes,
		LogsSynced: !n.cfg.Lazy, KeepsSchedules: stays, HoldsLog: holds, Triggers: triggers,
		RetainAge: n.cfg.RetainAge, RetainBytes: n.cfg.RetainBytes, LogsStored: logsStored(n), BlobRoom: n.blobs.Room, BlobStrays: n.blobs.Strays, Publish: n.events.queueEvent, Answers: n.answers, Now: n.cfg.now, Logger: n.cfg.Logger}))
	if err != nil {
		return err
	}
	n.lanes.open(n.control)
	if stays { // it also takes up the runs of each shard that it gains
		return n.logOwner.StartReconciling(ctx)
	}
	return nil
}

// startServerAndConnect starts the embedded server, if the node has one, and opens the five connections, for logs,
// readers, events, leases and requests: to the embedded server, or to an external server with the given credentials.
func (n *Node) startServerAndConnect() error {
	if err := statedir.CheckLogStore(n.cfg.LogStore); err != nil {
		return err
	}
	if n.cfg.Bus.NamesServer() && n.cfg.LogStore == statedir.LogsInFiles {
		return fmt.Errorf("%w: --log-store local needs a node of its own; with a server (-s), leave --log-store (log_store) out", statedir.ErrLogStore)
	}
	// Without a handler the library writes to stderr an error that an observer can cause: a
	// reply to a subject to which this node may not publish.
	onConnError := nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		n.cfg.Logger.Debug("NATS connection error", "error", err)
		if errors.Is(err, nats.ErrPermissionViolation) {
			n.lastDenied.Store(&err)
			if strings.Contains(err.Error(), streamCreation) { // the request is never answered
				n.cancelStart()
			}
		}
	})
	dial := func(r bus.Role) (*nats.Conn, error) {
		o := n.cfg.Bus
		o.InboxPrefix = cmp.Or(o.InboxPrefix, bus.InboxPrefix(r))
		if d := n.cfg.ServiceBus; r == bus.RoleService && (d.Creds != "" || d.NKey != "" || d.User != "" || d.Token != "") {
			o.Creds, o.NKey, o.User, o.Password, o.Token = d.Creds, d.NKey, d.User, d.Password, d.Token
			o.InboxPrefix = cmp.Or(d.InboxPrefix, bus.InboxPrefix(r))
		}
		o.Extra = append(slices.Clone(o.Extra), onConnError, closedHandler(n))
		return bus.Connect(o)
	}
	if !n.cfg.Bus.NamesServer() {
		e, err := n.cfg.StartServer.Start(localserver.Config{StateDir: statedir.StateDir(n.cfg.StateDir), Port: n.cfg.Port,
			DontListen: n.cfg.DontListen, NoPort: n.cfg.NoPort, ConfigHome: n.cfg.ConfigHome, OpenWatch: n.cfg.OpenWatch, OpenControl: n.cfg.OpenControl,
			Lazy: n.cfg.Lazy, LogStore: n.cfg.LogStore, Names: n.names, OnDiskChange: n.logHealth.reportDisk, Logger: n.cfg.Logger})
		if err != nil {
			return err
		}
		n.embedded = e
		dial = func(r bus.Role) (*nats.Conn, error) { return e.Connect(r, onConnError, closedHandler(n)) }
	}
	var err error
	if n.logConn, err = dial(bus.RoleNode); err != nil {
		return err
	}
	if n.readerConn, err = dial(bus.RoleNode); err != nil {
		return err
	}
	if n.eventConn, err = dial(bus.RoleNode); err != nil {
		return err
	}
	if n.leaseConn, err = dial(bus.RoleNode); err != nil {
		return err
	}
	n.serviceConn, err = dial(bus.RoleService)
	return err
}

// URL returns the address of the embedded server; "" for an external one.
func (n *Node) URL() string {
	if n.embedded == nil {
		return ""
	}
	return n.embedded.URL()
}

// NewClient returns a client inside the process, for concurrent use like the function itself.
// Close ends its connection.
func (n *Node) NewClient() (*client.Client, error) { return n.newClient() }

// Close stops the node. The next owner takes up the work in progress from the logs.
func (n *Node) Close() (err error) {
	var errs []error
	n.closed.startClosing()
	defer func() { err = errors.Join(err, n.recordings.Close()) }() // after the last model call
	if s := n.http.Load(); s != nil {
		errs = append(errs, s.Close())
	}
	if n.agentHost != nil {
		errs = append(errs, n.agentHost.Close())
	}
	if n.control != nil {
		errs = append(errs, n.control.Close())
	}
	if n.actorNode != nil {
		n.actorNode.Stop()
	}
	if !n.programs.Wait(process.EndMax) {
		errs = append(errs, errPrograms)
	}
	if n.logOwner != nil {
		n.logOwner.StopQueue()
	}
	n.mcpHub.Close()
	if n.a2a != nil {
		n.a2a.Close()
	}
	n.endLifetime()
	if n.logOwner != nil {
		n.logOwner.Close()
	}
	n.background.Wait()
	closeTelemetry(n)
	errs = append(errs, n.directories.Close())
	if n.post != nil {
		errs = append(errs, n.post.Close())
	}
	if n.eventConn != nil {
		n.events.publisher.close()
	}
	n.localMu.Lock()
	conns := slices.Concat(n.localConns, []*nats.Conn{n.serviceConn, n.leaseConn, n.readerConn, n.logConn, n.eventConn})
	n.localMu.Unlock()
	for _, nc := range conns {
		if nc != nil {
			nc.Close()
		}
	}
	if n.embedded != nil {
		errs = append(errs, n.embedded.Close())
	}
	return errors.Join(errs...)
}
