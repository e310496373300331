package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/host"
	"github.com/troupe-run/troupe/settings"
)

const (
	// joinTimeout is how long a state directory may be owned by somebody who
	// does not answer; main gives it to app.
	joinTimeout = 15 * time.Second
	joinPause   = 50 * time.Millisecond
	pingTimeout = 2 * time.Second
	// lingerTimeout is how long an owner that has its own result stays for the
	// runs of others; what is left then goes to the next owner.
	lingerTimeout = 5 * time.Second
	lingerPause   = 100 * time.Millisecond
)

// errGone is the cause of a seat's context once its node is gone.
var errGone = errors.New("the node is gone")

// purpose is what a seat is for, which decides what is started if nobody owns
// the state directory.
type purpose int

const (
	toRun  purpose = iota // a node that runs
	toLook                // a node that only reads logs and takes commands
	toJoin                // none: it must be there
)

// seat is where the commands go: a server elsewhere, the owner of the state
// directory, or a node in this process.
type seat struct {
	*client.Client
	ctx    context.Context // ends with the node
	url    string
	watch  string     // the command that observes the server, without its arguments
	joined int        // pid of the owner that was joined
	host   *host.Host // a node of our own
	roots  []string

	mu   sync.Mutex
	live map[string]bool // runs that were heard of since we own the directory
	stop func()

	closing sync.Once
	closed  error
}

// sit finds a node, or becomes one.
func (a *app) sit(ctx context.Context, why purpose, roots ...string) (*seat, error) {
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
		if errors.Is(err, bus.ErrNodeFile) {
			return nil, err // not even to be replaced: somebody should look at it
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
		case !errors.Is(err, host.ErrOwned) && !client.Lost(err), time.Now().After(deadline):
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
func (a *app) join(ctx context.Context) (*seat, error) {
	dir := bus.StateDir(a.storeIn)
	file, err := bus.ReadNodeFile(dir)
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
func (a *app) own(ctx context.Context, why purpose, roots []string) (*seat, error) {
	hooks, err := a.hooks()
	if err != nil && why == toRun { // what hooks would keep from happening must not happen without them
		return nil, err
	}
	own, err := agentfile.Share(settings.UserFile())
	if err != nil && why == toRun { // so must what a tool is said to do
		return nil, &failure{code: exitUsage, err: err, hint: "see docs/manners.md"}
	}
	prices, err := a.prices()
	if err != nil {
		return nil, err
	}
	h, err := host.Start(ctx, host.Config{StateDir: a.storeIn, NoPort: why == toLook, ConfigHome: bus.ConfigHome(a.getenv), Roots: roots, Upward: true, Env: a.getenv, Environ: os.Environ(), Model: a.model, Prices: prices, Hooks: hooks,
		Tools: own.Tools, Servers: userServers(), Record: a.tapes.record, Replay: a.tapes.replay, Still: why == toLook, MaxLiveRuns: a.maxLive, Logger: a.logger()})
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
func (a *app) hooks() ([]agent.Hook, error) {
	hooks, notes, err := agentfile.Hooks(settings.UserFile())
	if err != nil {
		return nil, &failure{code: exitUsage, err: err, hint: "mend its hooks, or take them out; see docs/hooks.md"}
	}
	for _, n := range notes {
		a.logger().Warn("a setting is not as it seems", "note", n.String())
	}
	return hooks, nil
}

func (a *app) logger() *slog.Logger {
	if !a.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// heard keeps which runs have somebody who started or resumed them.
func (s *seat) heard(e client.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case "shard.taken", "shard.released", "shard.unreadable", "shard.readable", "journal.unavailable", "journal.available", "journal.low": // of no run
	case "run.finished":
		delete(s.live, e.Run)
	default:
		s.live[e.Run] = true
	}
}

// gone reports whether an error means that the node is not there any more.
func (s *seat) gone(err error) bool {
	return err != nil && (client.Lost(err) || errors.Is(context.Cause(s.ctx), errGone))
}

// elsewhere: the node is behind a server that is not ours.
func (s *seat) elsewhere() bool { return s.host == nil && s.joined == 0 }

// Close gives the seat up at once.
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
