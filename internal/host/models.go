package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/model/scout"
	scriptfile "github.com/troupe-run/troupe/model/script"
)

// Most routes and scripts that are kept: clients name both. One that was dropped is found again when it is
// needed.
const (
	routesKept  = 256
	scriptsKept = 32
)

// scriptKey names a script by where it lies and by its bytes. A path has names without end, and the same path
// may have another approved content later.
type scriptKey struct{ place, digest string }

// models finds the client of a route once and keeps it.
type models struct {
	cfg   Config
	tapes tapes
	exits exits
	scout model.Client

	mu      sync.Mutex
	known   *recent[string, pick.Choice]
	scripts *recent[scriptKey, *scriptfile.Script]
}

func newModels(cfg Config, t tapes, x exits) *models {
	return &models{cfg: cfg, tapes: t, exits: x, scout: scout.New(),
		known: newRecent[string, pick.Choice](routesKept), scripts: newRecent[scriptKey, *scriptfile.Script](scriptsKept)}
}

// choose picks the model of a new run.
func (m *models) choose(ctx context.Context, named string) (pick.Choice, error) {
	if c, ok := m.cfg.Own.model(cmp.Or(named, m.tapes.model(named), m.cfg.Model)); ok {
		return m.keep(c), nil
	}
	c, err := pick.Choose(ctx, pick.Config{Model: m.tapes.model(named), Setting: m.cfg.Model, Env: m.tapes.env(m.cfg.Env), Scout: m.scout, Cache: true,
		Prices: m.cfg.Prices, Transport: m.tapes.transport(), Script: m.script})
	if err != nil {
		return c, fmt.Errorf("model: %w", err)
	}
	if named != m.tapes.model(named) {
		c.Why = "as it was recorded"
	}
	return m.keep(c), nil
}

// errNotApproved: a run may have written what a route names, and the user has not approved this content.
var errNotApproved = errors.New("host: the user of this node has not approved it, and it lies in a root, where runs write")

// script reads the script of a route. The node reads it again after a restart and after a takeover, when
// the request that named it was checked long ago, so each reading checks the content.
func (m *models) script(path string) (*scriptfile.Script, error) {
	return m.readScript(path, m.cfg.trustsScript)
}

// readScript parses a script whose content the caller allows: the bytes that are checked are those that are parsed.
func (m *models) readScript(path string, allows func(place, digest string) bool) (*scriptfile.Script, error) {
	place, data, err := readPlaced(path, scriptfile.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("host: script: %w", err)
	}
	key := scriptKey{place, agentfile.Digest(data)}
	if !allows(key.place, key.digest) {
		return nil, errNotApproved
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

func (m *models) keep(c pick.Choice) pick.Choice {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.put(c.Name(), c)
	return c
}

// choiceOf returns what was chosen for a route, and chooses again where it was dropped.
func (m *models) choiceOf(route string) (pick.Choice, error) {
	m.mu.Lock()
	c, ok := m.known.get(route)
	m.mu.Unlock()
	if ok {
		return c, nil
	}
	return m.choose(context.Background(), route)
}

// named finds the model that an agent file names.
func (m *models) named(route string) (pick.Choice, error) {
	return m.choose(context.Background(), route)
}

// gate names the gate of a route. What cannot be chosen has one of its own.
func (m *models) gate(route string) string {
	c, err := m.choiceOf(route)
	if err != nil {
		return route
	}
	return c.Gate
}

// client is what the actors ask with every attempt: the same route gets the
// same client, and never another model's.
func (m *models) client(route string) (model.Client, string, error) {
	c, err := m.choiceOf(route)
	if err != nil {
		return nil, "", &model.Error{Class: model.Misconfigured, Unbilled: true, Message: err.Error()}
	}
	return cleanClient{c.Client, m.exits}, c.Model, nil
}
