// Package routes finds the client of a route, PROVIDER/MODEL: of a provider, of the program
// that embeds the node, of a script, or of a recording.
package routes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/model"
	scriptfile "github.com/troupe-run/troupe/model/script"
)

// Most routes and scripts that are kept: clients can name any number of both. One that was dropped is
// found again when it is needed.
const (
	routesKept  = 256
	scriptsKept = 32
)

// scriptKey identifies a script by its path and its content. The same path may have another approved content
// later, and a path has countless names.
type scriptKey struct{ place, digest string }

// Config of a Resolver.
type Config struct {
	// Model is the route of runs that name none. Default: the first with credentials.
	Model string
	// NoScout: a run that names no model gets no built-in one.
	NoScout bool
	// Own are clients by route. They take precedence over the provider of that name.
	Own map[string]model.Client
	// Prices are the operator's prices and limits of models.
	Prices catalog.FactTable
	// RequestRates and TokenRates are what models may get in a minute.
	RequestRates, TokenRates throttle.RateTable
	// Env reads the environment.
	Env func(string) string
	// Trust decides which scripts may be played.
	Trust trust.Policy
	// Mask hides secrets in what clients stream.
	Mask *redact.Masker
	// Recordings are what the clients record to or play from.
	Recordings Recordings
}

// Resolver finds the client of a route once and keeps it.
type Resolver struct {
	cfg     Config
	builtin model.Client

	mu      sync.Mutex
	known   *lruCache[string, provider.Choice]
	scripts *lruCache[scriptKey, *scriptfile.Script]
}

// New returns a Resolver.
func New(cfg Config) *Resolver {
	return &Resolver{cfg: cfg, builtin: investigator.New(),
		known: newLRUCache[string, provider.Choice](routesKept), scripts: newLRUCache[scriptKey, *scriptfile.Script](scriptsKept)}
}

// ownChoice returns the client of a route that the program provides. Its price is unknown, unless the operator's
// prices list the route.
func (m *Resolver) ownChoice(name string) (provider.Choice, bool) {
	c, ok := m.cfg.Own[name]
	if !ok {
		return provider.Choice{}, false
	}
	before, rest, _ := strings.Cut(name, "/")
	facts, _ := m.cfg.Prices.Lookup(before, rest) // unknown facts are zero
	return provider.Choice{Price: facts.Price, Window: facts.Window, MaxOutput: facts.Output, Provider: before, Model: rest, Why: provider.DefinedByProgram, Client: c, Bound: provider.Documented, ThrottleKey: name}, true
}

// IsOwn reports whether the program provides the client of a route.
func (m *Resolver) IsOwn(route string) bool { _, own := m.cfg.Own[route]; return own }

// ChooseModel picks the model of a new run.
func (m *Resolver) ChooseModel(ctx context.Context, named string) (provider.Choice, error) {
	if c, ok := m.ownChoice(cmp.Or(named, m.cfg.Recordings.DefaultRoute(named), m.cfg.Model)); ok {
		return m.keepChoice(c), nil
	}
	scout := m.builtin
	if m.cfg.NoScout && cmp.Or(named, m.cfg.Recordings.DefaultRoute(named), m.cfg.Model) == "" {
		scout = nil
	}
	c, err := provider.Choose(ctx, provider.Config{Model: m.cfg.Recordings.DefaultRoute(named), Setting: m.cfg.Model, Env: m.cfg.Recordings.modelEnv(m.cfg.Env), Scout: scout, Cache: true,
		Prices: m.cfg.Prices, Transport: m.cfg.Recordings.httpTransport(), Script: m.readTrustedScript})
	if err != nil {
		return c, fmt.Errorf("model: %w", err)
	}
	if named != m.cfg.Recordings.DefaultRoute(named) {
		c.Why = "as it was recorded"
	}
	return m.keepChoice(c), nil
}

// ErrNotApproved: a run may have written the file that a route names, and the user has not approved its
// content.
var ErrNotApproved = errors.New("routes: it is in a root, where runs may write, and the user of this node has not approved it")

// readTrustedScript reads the script of a route. The node reads it again after a restart and after a takeover, when
// the request that named it was checked long ago, so each reading checks the content.
func (m *Resolver) readTrustedScript(path string) (*scriptfile.Script, error) {
	return m.ReadScript(path, m.cfg.Trust.TrustsScript)
}

// ReadScript parses a script whose content the caller allows: the bytes that are checked are those that are parsed.
func (m *Resolver) ReadScript(path string, allows func(place, digest string) bool) (*scriptfile.Script, error) {
	place, data, err := trust.ReadResolved(path, scriptfile.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("routes: script: %w", err)
	}
	key := scriptKey{place, agentfile.ContentDigest(data)}
	if !allows(key.place, key.digest) {
		return nil, ErrNotApproved
	}
	m.mu.Lock()
	s, ok := m.scripts.get(key)
	m.mu.Unlock()
	if ok {
		return s, nil
	}
	if s, err = scriptfile.Parse(data); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scripts.put(key, s)
	return s, nil
}

func (m *Resolver) keepChoice(c provider.Choice) provider.Choice {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.put(c.Name(), c)
	return c
}

// ChoiceOf returns the choice for a route, and chooses again if the choice was dropped.
func (m *Resolver) ChoiceOf(route string) (provider.Choice, error) {
	m.mu.Lock()
	c, ok := m.known.get(route)
	m.mu.Unlock()
	if ok {
		return c, nil
	}
	return m.ChooseModel(context.Background(), route)
}

// ChooseNamed returns the model that an agent file names.
func (m *Resolver) ChooseNamed(route string) (provider.Choice, error) {
	return m.ChooseModel(context.Background(), route)
}

// ThrottleName returns the throttle of a route. A route that cannot be chosen has its own.
func (m *Resolver) ThrottleName(route string) string {
	c, err := m.ChoiceOf(route)
	if err != nil {
		return route
	}
	return c.ThrottleKey
}

// RatesOf returns the rates that the settings allow a route. What is replayed has none: no provider is called.
func (m *Resolver) RatesOf(route string) throttle.Rates {
	if m.cfg.Recordings.play != nil || len(m.cfg.RequestRates)+len(m.cfg.TokenRates) == 0 {
		return throttle.Rates{}
	}
	c, err := m.ChoiceOf(route)
	if err != nil {
		return throttle.Rates{} // nothing is sent
	}
	return throttle.Rates{Requests: m.cfg.RequestRates.Of(c.Provider, c.Model), Tokens: m.cfg.TokenRates.Of(c.Provider, c.Model)}
}

// ResolveClient returns the client of a route for an attempt: the same route always gets the same
// client, and never that of another model.
func (m *Resolver) ResolveClient(route string) (model.Client, string, error) {
	c, err := m.ChoiceOf(route)
	if err != nil {
		return nil, "", &model.Error{Class: model.Misconfigured, Unbilled: true, Message: err.Error()}
	}
	if m.cfg.Recordings.play != nil {
		c.Client = replayedClient{c.Client}
	}
	if !m.IsOwn(route) {
		c.Client = provider.ExplainErrors(c, m.cfg.Env)
	}
	return redact.Client{Client: c.Client, Mask: m.cfg.Mask}, c.Model, nil
}
