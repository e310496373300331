package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/dispatcher"
	"github.com/troupe-run/troupe/internal/failpoint"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/internal/pidregistry"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// Config of a Node. Post, Lease and Model are required.
type Config struct {
	// Name is shown in events and results. Default "node".
	Name string
	// Post holds the logs. The node reads all of them and acts on those it Holds.
	Post mailbox.Post
	// Lease is the revision of the write that made this process the owner of all logs, if it
	// has no other owner. It must be higher than that of every previous owner.
	Lease uint64
	// Holds reports whether this process may try to act on a log, and the revision of the
	// write that allows it. It must be cheap, and is called from any goroutine. When the node
	// gains a log, Resume activates its actor. Default: all logs, by Lease.
	Holds func(at mailbox.Address) (lease uint64, ok bool)
	// Busy receives +1 when work for an actor begins and -1 when it ends: model calls, tools
	// and hooks. It must not block. Default: no calls.
	Busy func(at mailbox.Address, change int)
	// IdleTimeout is how long an actor that waits keeps its shell after its
	// newest entry. Default IdleTimeoutDefault.
	IdleTimeout time.Duration
	// ReplaysAtOnce is how many actors are activated at once: each appends a claim and replays its log. It bounds the
	// memory of a node that takes over many actors. Default ReplaysAtOnceDefault.
	ReplaysAtOnce int
	// Passivated receives +1 when an actor has passivated, and -1 when it is reactivated or this
	// node has handed it off. It must not block. Default: no calls.
	Passivated func(at mailbox.Address, change int)
	// Alive receives +1 when a shell is about to start, before Holds is called for it, and -1
	// when the shell has ended. It must not block. Default: no calls.
	Alive func(at mailbox.Address, change int)
	// Named receives the name of an agent whose shell has read it. It must not block. Default: no calls.
	Named func(at mailbox.Address, name string)
	// CountUnread makes the count of the entries that a new shell was sent and has not read. Default: they are not counted.
	CountUnread func() Unread
	// Serves reports whether a node that takes shards of a pool is alive. While one is, a
	// child that has given no sign of life is not given up: its node may be slow, or be
	// activating others first. It must not block. Default: unknown, and the child is given up
	// when its time is over.
	Serves func(pool string) bool
	// Model returns the client for "provider/model", and the name by which the provider knows
	// the model. It is called for every attempt, so it must be cheap.
	Model func(route string) (client model.Client, name string, err error)
	// Tools makes the tools of an agent. It is called once for each activation that calls a
	// tool. Default: no tools.
	Tools func(spec.Task) (*tool.Set, error)
	// OnNewerLog receives a log that is newer than this node, which never acts on it again. It
	// must not block.
	OnNewerLog func(at mailbox.Address, why string)
	// OnOtherLog receives the address of a log without an actor that has a new entry. It must not block.
	OnOtherLog func(at mailbox.Address)
	// Differs lists the configuration drift of this node from a task's Hashes, with "" for a
	// part that the node lacks. It is called outside the actors whenever a shell starts on an
	// agent that has its task. Default: nothing is compared.
	Differs func(spec.Task) map[string]string
	// Hooks are the hooks in Go, by name. They are called from many goroutines at once.
	// Default: only command lines can be hooks.
	Hooks map[string]HookFunc
	// HookEnv returns further variables (NAME=value) for hooks that are commands, of a run in a directory. Default: none.
	HookEnv func(workspace string) []string
	// Traceparent returns the trace context that the tool of a call receives. It must not block. Default:
	// that with which the run was started.
	Traceparent func(t spec.Task, tool, call string, attempt int) string
	// ThrottleOf names the throttle that the calls of a route pass: routes that share the limits of
	// a provider share its name. It is called for every attempt, so it must be cheap. Default:
	// the route.
	ThrottleOf func(route string) string
	// ThrottleLimits are the limits of all throttles. Default: those of package throttle.
	ThrottleLimits throttle.Limits
	// Rates are the requests and tokens a minute that the settings allow a route, on all nodes
	// together. It is called for every attempt. Default: there are none.
	Rates func(route string) throttle.Rates
	// PublishNotice receives a provider's notice at a throttle, to publish it to the other nodes: see
	// ApplyNotice. It must not block. Default: there are no other nodes.
	PublishNotice func(name string, n throttle.Notice)
	// Admit decides whether an actor without a shell gets one for an entry, or for a wake,
	// which has no Data. If it refuses, the entries stay in the log until an admitted entry or
	// Wake. It must not block. Default: every actor is admitted.
	Admit func(mailbox.Message) bool
	// Blobs stores whole results if the log holds only a clipped part. Default: the rest is
	// lost.
	Blobs mailbox.Blobs
	// OnEvent receives the events, in order per log; it must not block. Deltas come from other
	// goroutines. Default: no events are made, so they cost nothing.
	OnEvent func(event.Published)
	// OnRunChanged receives the state of a run whose supervisor has read the entry at place, whenever
	// its Summary changes, and now and then. It must not block. Default: no calls.
	OnRunChanged func(run string, place uint64, s supervisor.State)
	// OnResult receives, at least once, the result of a run that is over. It must not block.
	OnResult func(run string, r event.Result)
	// System returns what NewSystem has made, so that it can be made while the logs are opened. Default: NewSystem.
	System func() *System
	// Logger is for the operator. Default: discard.
	Logger *slog.Logger

	hooks  *hook.Runner
	keeper *actor.PID // of the throttles
	calls  dispatcher.Goroutines
}

// Limits of a node.
const (
	CrashesMax    = 3    // restarts of a shell in a row; after that its actor is given up
	recentlyEnded = 4096 // addresses whose late entries start no new shell
)

// ErrConfig says that a Config lacks a required field.
var ErrConfig = errors.New("actors: config")

// Node is a running set of shells.
type Node struct {
	cfg    Config
	system *actor.ActorSystem
	router *actor.PID
	keeper *actor.PID
	cancel context.CancelFunc
	stop   func()
	// release ends the goroutines that actors run on.
	release context.CancelFunc
}

// Start attaches to the logs and runs a shell for every actor that receives an entry from now
// on. Runs that existed before continue after Resume. Canceling ctx has the effect of Stop,
// but does not wait.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Post == nil || cfg.Model == nil {
		return nil, fmt.Errorf("%w: Post and Model are required", ErrConfig)
	}
	if cfg.Name == "" {
		cfg.Name = "node"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Holds == nil {
		cfg.Holds = func(mailbox.Address) (uint64, bool) { return cfg.Lease, true }
	}
	if cfg.Busy == nil {
		cfg.Busy = func(mailbox.Address, int) {}
	}
	cfg.ThrottleOf, cfg.Rates, cfg.PublishNotice = orDefaults(cfg)
	if cfg.IdleTimeout <= 0 {
		cfg.IdleTimeout = IdleTimeoutDefault
	}
	if cfg.ReplaysAtOnce <= 0 {
		cfg.ReplaysAtOnce = ReplaysAtOnceDefault
	}
	if cfg.Passivated == nil {
		cfg.Passivated = func(mailbox.Address, int) {}
	}
	if cfg.Alive == nil {
		cfg.Alive = func(mailbox.Address, int) {}
	}
	if cfg.Named == nil {
		cfg.Named = func(mailbox.Address, string) {}
	}
	if cfg.CountUnread == nil {
		cfg.CountUnread = func() Unread { return nil }
	}
	if cfg.Serves == nil {
		cfg.Serves = func(string) bool { return false }
	}
	if cfg.Traceparent == nil {
		cfg.Traceparent = func(t spec.Task, _, _ string, _ int) string { return t.Trace }
	}
	cfg.calls = dispatcher.NewGoroutines()
	cfg.hooks = hook.NewRunner(cfg.Hooks, cfg.HookEnv)
	if cfg.Tools == nil {
		cfg.Tools = func(spec.Task) (*tool.Set, error) { return tool.NewSet() }
	}
	if cfg.System == nil {
		cfg.System = NewSystem
	}
	n := &Node{cfg: cfg, system: cfg.System().actors}
	work, cancel := context.WithCancel(ctx)
	n.cancel = cancel
	// Cleanup must outlive the canceled work.
	rest, release := context.WithCancel(context.WithoutCancel(ctx))
	n.release = release
	workers := dispatcher.New(rest)
	n.keeper = n.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return actor.ReceiveFunc(newThrottleKeeper(cfg).receive) }, actor.WithDispatcher(workers)))
	cfg.keeper = n.keeper
	props := actor.PropsFromProducer(func() actor.Actor { return actor.ReceiveFunc(newRouter(work, cfg, workers).receive) }, actor.WithSupervisor(stopOnPanic),
		actor.WithDispatcher(workers))
	n.router = n.system.Root.Spawn(props)
	stop, err := cfg.Post.Tail(work, func(m mailbox.Message) { n.system.Root.Send(n.router, entryDelivered{m}) })
	if err != nil {
		n.stop = func() {}
		n.Stop()
		return nil, fmt.Errorf("actors: read the logs: %w", err)
	}
	n.stop = stop
	return n, nil
}

// System is what one Node needs of the actor library.
type System struct{ actors *actor.ActorSystem }

// NewSystem makes the system of a Node. It takes some milliseconds of processor time, because the library makes many maps.
func NewSystem() *System { return &System{newSystem()} }

// newSystem makes a small actor system without logging: the shells log with more context (see
// shell.logPanic).
func newSystem() *actor.ActorSystem {
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })
	return shrinkRegistry(actor.NewActorSystem(quiet))
}

// shrinkRegistry shrinks a system's registry while it holds only the library's own actors. Each of the library's 1,024
// maps allocates room for eight ids at its first one, however few shells run at a time.
func shrinkRegistry(system *actor.ActorSystem) *actor.ActorSystem {
	own := map[string]any{}
	for _, m := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
		if m.Count() > 0 { // Items starts a goroutine for each part of m
			maps.Copy(own, m.Items())
		}
	}
	fewer := &actor.SliceMap{LocalPIDs: slices.Clone(system.ProcessRegistry.LocalPIDs.LocalPIDs[:pidregistry.Keep()])}
	for id, process := range own {
		fewer.GetBucket(id).Set(id, process)
	}
	system.ProcessRegistry.LocalPIDs = fewer
	return system
}

// openRequest names the first entry of a run. Like all names of requests that troupe itself makes, it has a dot, which no
// request id of a client has: a client that chose the same id would have the request dropped.
const openRequest = "open.run"

// Open appends the first entry of a run. Opening the same run again is harmless, because it
// is the same request.
func (n *Node) Open(ctx context.Context, o supervisor.Opened) error {
	return n.Command(ctx, mailbox.At(o.Run, mailbox.Super), openRequest, o.Kind(), o)
}

// Command appends a client's request to an actor's log. The request id makes it idempotent:
// an actor applies each id once.
func (n *Node) Command(ctx context.Context, to mailbox.Address, request, kind string, body any) error {
	data, err := encodeCommand(request, kind, body)
	if err != nil {
		return fmt.Errorf("actors: %s for %s: %w", kind, to, err)
	}
	failpoint.At(failpoint.CommandBefore, kind)
	if _, err := mailbox.Put(ctx, n.cfg.Post, to, data); err != nil {
		return fmt.Errorf("actors: %s for %s: %w", kind, to, err)
	}
	failpoint.At(failpoint.CommandAfter, kind)
	return nil
}

// encodeCommand makes the entry of a request.
func encodeCommand(request, kind string, body any) ([]byte, error) {
	raw, err := mailbox.Marshal(body)
	if err != nil {
		return nil, err
	}
	return mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: request, Kind: kind, Body: raw}}})
}

// Resume starts a shell for every actor of a run that has a log. Shells of actors that have
// ended stop by themselves.
func (n *Node) Resume(ctx context.Context, run string) error {
	addresses, err := n.cfg.Post.Addresses(ctx, run)
	if err != nil {
		return fmt.Errorf("actors: resume %s: %w", run, err)
	}
	for _, a := range addresses {
		n.Wake(a)
	}
	return nil
}

// Wake starts a shell for an actor that has none, if this node holds its log.
func (n *Node) Wake(at mailbox.Address) { n.system.Root.Send(n.router, wakeActor{at}) }

// Stop ends all shells and the work that they have under way. The next owner resumes
// unfinished work from the logs. Stopping again does nothing.
func (n *Node) Stop() {
	if n.system.IsStopped() {
		return
	}
	n.stop()
	n.cancel()
	// The router stops its children before it stops itself.
	if err := n.system.Root.StopFuture(n.router).Wait(); err != nil {
		n.cfg.Logger.Warn("a shell did not stop in time", "error", err)
	}
	n.system.Shutdown()
	n.release()
}
