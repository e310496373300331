// Package session connects a command to a node: a server elsewhere, the owner of the state
// directory, or a node that it starts in this process.
package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/telemetry"
)

// Opener connects commands to a node, or starts one in this process. Its fields are the
// global flags about the server, the state directory and the models.
type Opener struct {
	Console     *console.Console
	StartServer localserver.StartFunc // of a node in this process, or for those of troupe up
	Conn        ConnFlags
	StateDir    string // --store-dir
	PricingFile string // --pricing-file
	Model       string // from the settings; a flag takes precedence
	MaxLiveRuns int    // runs of a node in this process
	LogStore    string // --log-store
	// RequestRates and TokenRates are rates of a node in this process, from the settings: see config.ParseRates.
	RequestRates, TokenRates string
	HTTP                     string             // --http: address of the HTTP server of a node in this process; "": none
	Telemetry                telemetry.Settings // of a node in this process
	JoinTimeout              time.Duration      // with an owner of the state directory that does not answer
	Recordings               Recordings
	// Contributions are agents, tools and models in Go of a node in this process.
	Contributions node.Contributions
}

// Secrets are those that the environment and the flags hold.
func (o *Opener) Secrets() *redact.Masker {
	return node.NewMasker(node.Config{Env: o.Console.Getenv, Environ: os.Environ(), Bus: o.Conn.Options})
}

// CheckState rejects a named state directory without state, so that a mistyped path creates nothing. The first command
// creates the directory of the user.
func (o *Opener) CheckState() error {
	if o.Conn.NamesServer() || o.StateDir == "" || statedir.HoldsState(o.StateDir) {
		return nil
	}
	return exit.UsageError("check --store-dir; `troupe run` and `troupe restore` make a new state directory", "there is no troupe state in %s", o.StateDir)
}

// Visit runs a function on a node, and closes what it opened.
func (o *Opener) Visit(why Purpose, do func(ctx context.Context, s *Session) error) error {
	if err := o.CheckState(); err != nil {
		return err
	}
	sig := interrupt.Catch()
	defer sig.Stop()
	s, err := o.Open(sig.Starting, why)
	if err != nil {
		return err
	}
	err = do(s.Context, s)
	if errors.Is(context.Cause(s.Context), errNodeGone) && (client.Lost(err) || errors.Is(err, context.Canceled)) {
		err = errors.Join(client.ErrUnavailable, err)
	}
	return errors.Join(err, s.Close())
}

// VisitRun is Visit for a command about a run. text is what the user typed for it: an id, the
// beginning of one, or "last".
func (o *Opener) VisitRun(why Purpose, text string, do func(ctx context.Context, s *Session, run string) error) error {
	return o.Visit(why, func(ctx context.Context, s *Session) error {
		run, err := s.FindRun(ctx, text)
		if err != nil {
			return err
		}
		return do(ctx, s, run)
	})
}

// ownersAsked is how many owners of a state directory a command asks, one after the other.
const ownersAsked = 5

// AskOwners is VisitRun for a command that prints nothing before it has its answer: if the process that it has joined ends
// meanwhile, the command asks the next owner of the state directory, or a node of its own. An owner that answers with an
// error has not ended, whatever it lacks.
func (o *Opener) AskOwners(why Purpose, text string, do func(ctx context.Context, s *Session, run string) error) error {
	for asked := 1; ; asked++ {
		gone := false
		err := o.Visit(why, func(ctx context.Context, s *Session) error {
			run, err := s.FindRun(ctx, text)
			if err == nil {
				err = do(ctx, s, run)
			}
			gone = s.isOwnerGone(err)
			return err
		})
		if !gone || asked == ownersAsked {
			return err
		}
	}
}

// Prices are those of --pricing-file.
func (o *Opener) Prices() (catalog.FactTable, error) {
	t, err := catalog.LoadFile(o.PricingFile)
	if err != nil {
		return t, &exit.Failure{Code: exit.Usage, Err: err, Hint: "--pricing-file names the file; see docs/prices.md"}
	}
	return t, nil
}

const (
	// JoinTimeout limits the time in which a process that owns the state directory must
	// answer, on an ordinary machine.
	JoinTimeout = 15 * time.Second
	joinPause   = 50 * time.Millisecond
	pingTimeout = 2 * time.Second
	// lingerTimeout is how long an owner that has its own result stays for the
	// runs of others and for hooks; the next owner continues the runs that are left.
	lingerTimeout = 5 * time.Second
	lingerPause   = 100 * time.Millisecond
)

// errNodeGone is the cause of a session's context once its node is gone.
var errNodeGone = errors.New("the node is gone")

// Purpose is what a command needs a node for. It decides what the command starts if no
// process owns the state directory.
type Purpose int

// The purposes of a session.
const (
	ToRun     Purpose = iota // a node that runs agents
	ToInspect                // a node that only reads logs and takes commands
	ToJoin                   // none: a node must be running
)

// Open connects to a node, or starts one.
func (o *Opener) Open(ctx context.Context, why Purpose, roots ...string) (*Session, error) {
	if o.Conn.NamesServer() {
		c, err := client.Dial(o.Conn.Options, "")
		if err != nil {
			return nil, err
		}
		return &Session{Client: c, Context: ctx, Address: c.URL(), flags: o.HintFlags()}, nil
	}
	if o.Conn.Given.As != "" {
		return nil, errOwnerAlone
	}
	deadline := time.Now().Add(o.JoinTimeout)
	for {
		s, err := o.joinOwner(ctx)
		if errors.Is(err, statedir.ErrNodeFile) {
			return nil, err // never replace a bad node file: a person must check it
		}
		if err != nil && why != ToJoin {
			s, err = o.startNode(ctx, why, roots)
		}
		switch {
		case err == nil:
			return s, nil
		case why == ToJoin && !client.Lost(err):
			return nil, errNoNode
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, node.ErrOwned) && !client.Lost(err), time.Now().After(deadline):
			return nil, err
		}
		if err := Pause(ctx, joinPause); err != nil {
			return nil, err
		}
	}
}

// errOwnerAlone: a local node has no owners, so the request would be that of an operator.
var errOwnerAlone = exit.UsageError("name the server: -s URL, or NATS_URL; `troupe answer --by NAME` records another name with an answer", "--as is for servers that owners share")

// ErrNoNode says that no node is running.
var ErrNoNode = errors.New("no troupe node is running")

var errNoNode = &exit.Failure{Code: exit.NoNode, Err: ErrNoNode, Hint: "start troupe-node; or troupe run, which needs none"}

// joinOwner connects to the owner of the state directory, if it answers.
func (o *Opener) joinOwner(ctx context.Context) (*Session, error) {
	dir := statedir.StateDir(o.StateDir)
	file, err := statedir.ReadNodeFile(dir)
	if err != nil {
		return nil, err
	}
	alive, end := context.WithCancelCause(ctx)
	c, err := client.Join(dir, func() { end(errNodeGone) })
	if err != nil {
		end(nil)
		return nil, err
	}
	s := &Session{Client: c, Context: alive, Address: file.Address, WatchCommand: file.Watch, OwnerPID: file.PID, flags: o.HintFlags()}
	ping, cancel := context.WithTimeout(alive, pingTimeout)
	defer cancel()
	if _, err := c.Get(ping, client.NewID()); s.IsGone(err) {
		s.Client.Close()
		return nil, fmt.Errorf("%w: pid %d", client.ErrUnavailable, file.PID)
	}
	return s, nil
}

// startNode starts a node in this process.
func (o *Opener) startNode(ctx context.Context, why Purpose, roots []string) (*Session, error) {
	cfg, err := o.userFiles()
	if err != nil && why == ToRun { // without its hooks, a run could do what they would prevent
		return nil, err
	}
	own, err := agentfile.LoadShared(config.UserFile())
	if err != nil && why == ToRun { // the same holds for the declared effects of tools
		return nil, &exit.Failure{Code: exit.Usage, Err: err, Hint: "troupe config validate shows all that is wrong; see " + agentfile.PageOf(err)}
	}
	prices, err := o.Prices()
	if err != nil {
		return nil, err
	}
	stored, err := o.nodeSettings()
	if err != nil && why == ToRun { // others remove nothing
		return nil, err
	}
	requests, tokens, err := config.ParseRates(o.RequestRates, o.TokenRates)
	if err != nil {
		return nil, &exit.Failure{Code: exit.Usage, Err: err, Hint: "troupe config validate shows all that is wrong; see docs/throttling.md"}
	}
	alive, end := context.WithCancelCause(ctx)
	h, err := node.Start(ctx, node.Config{
		StartServer:      o.StartServer,
		OnConnectionLost: func(error) { end(errNodeGone) },
		HTTP:             o.httpConfig(why),
		StateDir:         o.StateDir,
		LogStore:         o.LogStore,
		NoPort:           why == ToInspect,
		ConfigHome:       localserver.ConfigHome(o.Console.Getenv),
		Roots:            roots,
		SearchParentDirs: true,
		UserDirs:         true,
		Env:              o.Console.Getenv,
		Environ:          os.Environ(),
		Model:            o.Model,
		Prices:           prices,
		Hooks:            cfg.Hooks,
		ClaudeHome:       cfg.ClaudeHome,
		CommandEnv:       cfg.CommandEnv,
		Guardrails:       own.Guardrails,
		Tools:            own.Tools,
		A2AAgents:        own.A2AAgents,
		DelegateCharges:  own.Charges,
		UserSettings:     config.UserFile(),
		Servers:          UserServerFile(),
		Record:           o.Recordings.record,
		Replay:           o.Recordings.replay,
		NoActors:         why == ToInspect,
		MaxLiveRuns:      o.MaxLiveRuns,
		RetainAge:        stored.RetainAge, RetainBytes: stored.RetainBytes,
		EventsContent: stored.EventsContent,
		RequestRates:  requests,
		TokenRates:    tokens,
		Telemetry:     o.Telemetry,
		Contributions: o.Contributions,
		Logger:        o.Console.Logger(),
	})
	if err != nil {
		return nil, err
	}
	s := &Session{Context: alive, Address: h.URL(), WatchCommand: h.WatchCommand(), Node: h, roots: roots, live: map[string]bool{}, flags: o.HintFlags()}
	if s.Client, err = h.NewClient(); err == nil && why == ToRun {
		s.stop, err = s.Watch(s.trackLiveRuns)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return s, nil
}

// httpConfig is the API over HTTP that a node for a run offers; nil: none.
func (o *Opener) httpConfig(why Purpose) *node.HTTPConfig {
	if o.HTTP == "" || why != ToRun {
		return nil
	}
	return &node.HTTPConfig{Address: o.HTTP, Token: o.Console.Getenv("TROUPE_HTTP_TOKEN")}
}

// nodeSettings returns the user's own settings that hold for each node of the state directory: one in this process
// removes runs by the same limits, and shows observers the same, whichever command starts it.
func (o *Opener) nodeSettings() (c node.Config, err error) {
	found, err := config.Load(config.SettingSources{Getenv: o.Console.Getenv})
	if err == nil {
		c.EventsContent = found["events_content"].Value
		c.RetainAge, c.RetainBytes, err = config.ParseRetention(found["retain_age"].Value, found["retain_size"].Value)
	}
	if err != nil {
		return c, &exit.Failure{Code: exit.Usage, Err: err, Hint: "troupe config validate shows all that is wrong; see docs/operating.md"}
	}
	return c, nil
}

// userFiles reads the user's own hooks and files of Claude Code.
func (o *Opener) userFiles() (cfg node.Config, err error) {
	var notes, more []agentfile.Note
	if cfg.Hooks, notes, err = agentfile.LoadHooks(config.UserFile()); err == nil {
		cfg, more, err = cfg.WithClaudeFiles()
	}
	if err != nil {
		return cfg, &exit.Failure{Code: exit.Usage, Err: err, Hint: "fix the file; see docs/hooks.md"}
	}
	for _, n := range append(notes, more...) {
		o.Console.Logger().Warn("a setting is not as it seems", "note", n.String())
	}
	return cfg, nil
}
