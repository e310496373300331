package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/node"
)

const (
	// JoinTimeout limits the time in which a process that owns the state directory must
	// answer, on an ordinary machine.
	JoinTimeout = 15 * time.Second
	joinPause   = 50 * time.Millisecond
	pingTimeout = 2 * time.Second
	// lingerTimeout is how long an owner that has its own result stays for the
	// runs of others; the next owner continues the runs that are left.
	lingerTimeout = 5 * time.Second
	lingerPause   = 100 * time.Millisecond
)

// errGone is the cause of a seat's context once its node is gone.
var errGone = errors.New("the node is gone")

// purpose is what a command needs a node for. It decides what the command starts if no
// process owns the state directory.
type purpose int

const (
	toRun  purpose = iota // a node that runs agents
	toLook                // a node that only reads logs and takes commands
	toJoin                // none: a node must be running
)

// seat is the node that receives the commands: a server elsewhere, the owner of the state
// directory, or a node in this process.
type seat struct {
	*client.Client
	ctx    context.Context // ends with the node
	url    string
	watch  string     // the command that observes the server, without its arguments
	joined int        // pid of the owner that this process connected to
	host   *node.Node // a node of our own
	roots  []string

	mu   sync.Mutex
	live map[string]bool // runs with events since this process owns the directory
	stop func()

	closing sync.Once
	closed  error
}

// sit connects to a node, or starts one.
func (a *opener) sit(ctx context.Context, why purpose, roots ...string) (*seat, error) {
	if a.conn.Given() {
		c, err := client.Dial(a.conn.Options, "")
		if err != nil {
			return nil, err
		}
		return &seat{Client: c, ctx: ctx, url: c.URL()}, nil
	}
	deadline := time.Now().Add(a.patience)
	for {
		s, err := a.join(ctx)
		if errors.Is(err, statedir.ErrNodeFile) {
			return nil, err // never replace a bad node file: a person must check it
		}
		if err != nil && why != toJoin {
			s, err = a.own(ctx, why, roots)
		}
		switch {
		case err == nil:
			return s, nil
		case why == toJoin && !client.Lost(err):
			return nil, errNoNode
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, node.ErrOwned) && !client.Lost(err), time.Now().After(deadline):
			return nil, err
		}
		if err := pause(ctx, joinPause); err != nil {
			return nil, err
		}
	}
}

var errNoNode = &failure{exitNoNode, errors.New("no troupe node is running"), "start troupe-node; or troupe run, which needs none"}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join connects to the owner of the state directory, if it answers.
func (a *opener) join(ctx context.Context) (*seat, error) {
	dir := statedir.StateDir(a.storeIn)
	file, err := statedir.ReadNodeFile(dir)
	if err != nil {
		return nil, err
	}
	alive, end := context.WithCancelCause(ctx)
	c, err := client.Join(dir, func() { end(errGone) })
	if err != nil {
		end(nil)
		return nil, err
	}
	s := &seat{Client: c, ctx: alive, url: file.Address, watch: file.Watch, joined: file.PID}
	ping, cancel := context.WithTimeout(alive, pingTimeout)
	defer cancel()
	if _, err := c.Get(ping, client.NewID()); s.gone(err) {
		s.Client.Close()
		return nil, fmt.Errorf("%w: pid %d", client.ErrUnavailable, file.PID)
	}
	return s, nil
}

// own starts a node in this process.
func (a *opener) own(ctx context.Context, why purpose, roots []string) (*seat, error) {
	hooks, err := a.hooks()
	if err != nil && why == toRun { // without its hooks, a run could do what they would prevent
		return nil, err
	}
	own, err := agentfile.Share(config.UserFile())
	if err != nil && why == toRun { // the same holds for the declared effects of tools
		return nil, &failure{code: exitUsage, err: err, hint: "see docs/manners.md"}
	}
	prices, err := a.prices()
	if err != nil {
		return nil, err
	}
	h, err := node.Start(ctx, node.Config{StateDir: a.storeIn, NoPort: why == toLook, ConfigHome: embedded.ConfigHome(a.console.getenv), Roots: roots, Upward: true, Env: a.console.getenv, Environ: os.Environ(), Model: a.model, Prices: prices, Hooks: hooks,
		Tools: own.Tools, Servers: userServers(), Record: a.tapes.record, Replay: a.tapes.replay, Still: why == toLook, MaxLiveRuns: a.maxLive, Logger: a.console.logger()})
	if err != nil {
		return nil, err
	}
	s := &seat{ctx: ctx, url: h.URL(), watch: h.Watch(), host: h, roots: roots, live: map[string]bool{}}
	if s.Client, err = h.Client(); err == nil && why == toRun {
		s.stop, err = s.Watch(s.heard)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return s, nil
}

// hooks are the user's own.
func (a *opener) hooks() ([]spec.Hook, error) {
	hooks, notes, err := agentfile.Hooks(config.UserFile())
	if err != nil {
		return nil, &failure{code: exitUsage, err: err, hint: "mend its hooks, or take them out; see docs/hooks.md"}
	}
	for _, n := range notes {
		a.console.logger().Warn("a setting is not as it seems", "note", n.String())
	}
	return hooks, nil
}

// heard records which runs are live because a client has started or resumed them.
func (s *seat) heard(e client.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case event.KindShardTaken, event.KindShardReleased, event.KindShardUnreadable, event.KindShardReadable, event.KindJournalUnavailable, event.KindJournalAvailable, event.KindJournalLow: // of no run
	case event.KindRunFinished:
		delete(s.live, e.Run)
	default:
		s.live[e.Run] = true
	}
}

// gone reports whether an error means that the node no longer exists.
func (s *seat) gone(err error) bool {
	return err != nil && (client.Lost(err) || errors.Is(context.Cause(s.ctx), errGone))
}

// elsewhere reports whether the node is behind a server that is not ours.
func (s *seat) elsewhere() bool { return s.host == nil && s.joined == 0 }

// Close releases the seat at once.
func (s *seat) Close() error {
	s.closing.Do(func() {
		if s.host == nil {
			s.Client.Close()
			return
		}
		if s.stop != nil {
			s.stop()
		}
		s.closed = s.host.Close()
	})
	return s.closed
}

// leave gives the seat up, but first lets the runs of others that live here
// come to their end, for a while.
func (s *seat) leave(ctx context.Context, own string) error {
	deadline := time.Now().Add(lingerTimeout)
	for s.host != nil && time.Now().Before(deadline) && s.others(ctx, own) {
		if pause(ctx, lingerPause) != nil {
			break
		}
	}
	return s.Close()
}

// others reports whether runs other than own are live here, and not only
// waiting for a person.
func (s *seat) others(ctx context.Context, own string) bool {
	open, err := s.host.Unfinished(ctx)
	if err != nil {
		return false
	}
	for _, i := range open {
		s.mu.Lock()
		live := s.live[i.RunID]
		s.mu.Unlock()
		if i.RunID == own || !live {
			continue
		}
		if info, err := s.Get(ctx, i.RunID); err == nil && (info.State == "live" || info.State == "queued") {
			return true
		}
	}
	return false
}
