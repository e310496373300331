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

// models finds the client of a route once and keeps it.
type models struct {
	cfg   Config
	tapes tapes
	exits exits
	scout model.Client

	mu    sync.Mutex
	known map[string]pick.Choice
}

func newModels(cfg Config, t tapes, x exits) *models {
	return &models{cfg: cfg, tapes: t, exits: x, scout: scout.New(), known: map[string]pick.Choice{}}
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
	if !allows(place, agentfile.Digest(data)) {
		return nil, errNotApproved
	}
	return scriptfile.Parse(data)
}

func (m *models) keep(c pick.Choice) pick.Choice {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[c.Name()] = c
	return c
}

// named finds the model that an agent file names.
func (m *models) named(route string) (pick.Choice, error) {
	return m.choose(context.Background(), route)
}

// gate names the gate of a route. What cannot be chosen has one of its own.
func (m *models) gate(route string) string {
	m.mu.Lock()
	c, ok := m.known[route]
	m.mu.Unlock()
	if !ok {
		return route
	}
	return c.Gate
}

// client is what the actors ask with every attempt: the same route gets the
// same client, and never another model's.
func (m *models) client(route string) (model.Client, string, error) {
	m.mu.Lock()
	c, ok := m.known[route]
	m.mu.Unlock()
	if !ok {
		var err error
		if c, err = m.choose(context.Background(), route); err != nil {
			return nil, "", &model.Error{Class: model.Misconfigured, Unbilled: true, Message: err.Error()}
		}
	}
	return cleanClient{c.Client, m.exits}, c.Model, nil
}
