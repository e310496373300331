// Package actors runs the pure machines as protoactor actors: one shell for
// each agent and each supervisor. A shell reads its log, lets the machine
// decide, and does what it says; it decides nothing itself.
//
// Three rules hold here. Log first: the result of our own work is appended to
// our own log and comes round like everything else. One concurrency idiom: go
// work(ctx), then Send to an actor; no channel, mutex or future. Cleanup uses
// a context that is not canceled.
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

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/gate"
	"github.com/troupe-run/troupe/hook"
	"github.com/troupe-run/troupe/internal/crew"
	"github.com/troupe-run/troupe/internal/trap"
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
	// Lease is the revision of the write that made this process the owner of all
	// logs, where there is no other. It must be higher than that of every owner before.
	Lease uint64
	// Holds says whether this process may try to act on a log, and by the revision
	// of which write. It must be cheap, and is called from any goroutine. What it
	// comes to hold is woken by Resume. Default: all of them, by Lease.
	Holds func(at mailbox.Address) (lease uint64, ok bool)
	// Busy is told of work for an actor that begins (+1) and ends (-1): model calls,
	// tools and hooks. It must not block. Default: nobody asks.
	Busy func(at mailbox.Address, change int)
	// Linger is how long an actor that waits keeps its shell after its newest entry.
	// Default LingerDefault.
	Linger time.Duration
	// Resting is told of an actor that has come to rest (+1), and of one that is
	// woken or that this node has given away (-1). It must not block. Default: nobody asks.
	Resting func(at mailbox.Address, change int)
	// Alive is told of a shell that is about to start (+1), before Holds is asked for
	// it, and of one that is gone (-1). It must not block. Default: nobody asks.
	Alive func(at mailbox.Address, change int)
	// Serves reports whether a node that takes shards of a pool lives. A child that has
	// given no sign of life is not given up meanwhile: its node may be slow, or be taking
	// up others first. It must not block. Default: nobody knows, and the child is given up
	// when its time is over.
	Serves func(pool string) bool
	// Model finds the client behind "provider/model", and the name that the
	// provider knows the model by. Called for every attempt; it must be cheap.
	Model func(route string) (client model.Client, name string, err error)
	// Tools makes the tools of an agent. Called once for each start of its shell
	// that calls one. Default: no tools.
	Tools func(agent.Task) (*tool.Set, error)
	// Rules are the newest that this node knows, which only tests change. Default:
	// agent.Rules.
	Rules int
	// Foreign is told of a log that is newer than this node, which never acts on it
	// again. It must not block.
	Foreign func(at mailbox.Address, why string)
	// Differs says what this node has otherwise than a task's Hashes say, "" for
	// what it has not at all. Called beside the actors whenever a shell starts on an
	// agent that has its task. Default: nothing is compared.
	Differs func(agent.Task) map[string]string
	// Hooks are the hooks in Go, by name. They are called from many goroutines at
	// once. Default: only command lines can be hooks.
	Hooks map[string]hook.Func
	// Gate names the gate that the calls of a route pass: those that share the
	// limits of a provider share its name. Called for every attempt; it must be
	// cheap. Default: the route.
	Gate func(route string) string
	// Gates are the limits of all gates. Default: those of package gate.
	Gates gate.Limits
	// Rates are the requests and tokens a minute that a gate allows on all nodes
	// together; 0 is unknown. Default: unknown.
	Rates func(gate string) (requests, tokens int64)
	// Told takes what a provider has said at a gate, for the other nodes: see Hear.
	// It must not block. Default: there are none.
	Told func(gate string, n gate.Notice)
	// Admit decides whether an actor that has no shell gets one for an entry, or for a
	// wake, which has no Data. An actor that is not admitted stays in its log until an
	// admitted entry or Wake. It must not block. Default: every actor is admitted.
	Admit func(mailbox.Message) bool
	// Blobs keeps the whole of results that are clipped. Default: they are lost.
	Blobs mailbox.Blobs
	// Events takes what happened, in order per log; it must not block. Deltas
	// come from other goroutines. Default: nobody watches, and nobody pays.
	Events func(life.Event)
	// Over is told, at least once, that a run is over. It must not block.
	Over func(run string, r supervisor.Result)
	// Logger is for the operator. Default: discard.
	Logger *slog.Logger

	hooks  *hook.Runner
	keeper *actor.PID // of the gates
}

// Limits of a node.
const (
	CrashesMax    = 3    // restarts of a shell in a row; then its actor is given up
	RecentlyEnded = 4096 // addresses whose late entries are not worth a new shell
)

// ErrConfig: a Config without what is required.
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

// Start attaches to the logs and runs a shell for every actor that gets an
// entry from now on. Runs that were there before go on after Resume.
// Canceling ctx has the effect of Stop without its waiting.
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
	cfg.Gate, cfg.Rates, cfg.Told = orDefaults(cfg)
	if cfg.Linger <= 0 {
		cfg.Linger = LingerDefault
	}
	if cfg.Resting == nil {
		cfg.Resting = func(mailbox.Address, int) {}
	}
	if cfg.Alive == nil {
		cfg.Alive = func(mailbox.Address, int) {}
	}
	if cfg.Serves == nil {
		cfg.Serves = func(string) bool { return false }
	}
	cfg.hooks = hook.NewRunner(cfg.Hooks)
	if cfg.Tools == nil {
		cfg.Tools = func(agent.Task) (*tool.Set, error) { return tool.NewSet() }
	}
	n := &Node{cfg: cfg, system: newSystem()}
	work, cancel := context.WithCancel(ctx)
	n.cancel = cancel
	// Cleanup is done by hands that outlive work.
	rest, release := context.WithCancel(context.WithoutCancel(ctx))
	n.release = release
	hands := crew.New(rest)
	n.keeper = n.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return newGatekeeper(cfg) }, actor.WithDispatcher(hands)))
	cfg.keeper = n.keeper
	props := actor.PropsFromProducer(func() actor.Actor { return newRouter(work, cfg, hands) }, actor.WithSupervisor(stopOnPanic),
		actor.WithDispatcher(hands))
	n.router = n.system.Root.Spawn(props)
	stop, err := cfg.Post.Tail(work, func(m mailbox.Message) { n.system.Root.Send(n.router, delivered{m}) })
	if err != nil {
		n.stop = func() {}
		n.Stop()
		return nil, fmt.Errorf("actors: read the logs: %w", err)
	}
	n.stop = stop
	return n, nil
}

// registryMaps is how many maps a node has for the ids of its shells. The library
// makes 32 times 1,024 of them, each of which gets room for eight at its first
// one: 12 MiB, however few shells there are at a time.
const registryMaps = 8 // times 32

// newSystem is small and quiet: what it has to say, the shells say with more
// sense (see Receive).
func newSystem() *actor.ActorSystem {
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })
	return small(actor.NewActorSystem(quiet))
}

// small makes a system's registry smaller, before anything but the library's own
// is in it.
func small(system *actor.ActorSystem) *actor.ActorSystem {
	own := map[string]any{}
	for _, m := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
		if m.Count() > 0 { // Items starts a goroutine for each of the 32 maps in m
			maps.Copy(own, m.Items())
		}
	}
	fewer := &actor.SliceMap{LocalPIDs: slices.Clone(system.ProcessRegistry.LocalPIDs.LocalPIDs[:registryMaps])}
	for id, process := range own {
		fewer.GetBucket(id).Set(id, process)
	}
	system.ProcessRegistry.LocalPIDs = fewer
	return system
}

// Open appends the first entry of a run. Opening the same run again is
// harmless: it is the same request.
func (n *Node) Open(ctx context.Context, o supervisor.Opened) error {
	return n.Command(ctx, mailbox.At(o.Run, mailbox.Super), "open", o.Kind(), o)
}

// Command appends a request of a client to an actor's log. request names it:
// the same name is applied once.
func (n *Node) Command(ctx context.Context, to mailbox.Address, request, kind string, body any) error {
	data, err := command(request, kind, body)
	if err != nil {
		return fmt.Errorf("actors: %s for %s: %w", kind, to, err)
	}
	trap.At(trap.CommandBefore, kind)
	if _, err := mailbox.Put(ctx, n.cfg.Post, to, data); err != nil {
		return fmt.Errorf("actors: %s for %s: %w", kind, to, err)
	}
	trap.At(trap.CommandAfter, kind)
	return nil
}

// command is the entry of a request.
func command(request, kind string, body any) ([]byte, error) {
	raw, err := mailbox.Marshal(body)
	if err != nil {
		return nil, err
	}
	return mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: request, Kind: kind, Body: raw}}})
}

// Resume starts a shell for every actor of a run that has a log. Actors that
// have ended stop again by themselves.
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
func (n *Node) Wake(at mailbox.Address) { n.system.Root.Send(n.router, wake{at}) }

// Stop ends all shells and what they have under way. What was not finished is
// taken up from the logs by the next owner. Stopping again does nothing.
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
