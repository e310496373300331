package host

import (
	"cmp"
	"context"
	"fmt"
	"sync"

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

	mu      sync.Mutex
	known   map[string]pick.Choice
	scripts map[string]*scriptfile.Script // by path: what requests named, as it was looked at
}

func newModels(cfg Config, t tapes, x exits) *models {
	return &models{cfg: cfg, tapes: t, exits: x, scout: scout.New(), known: map[string]pick.Choice{}, scripts: map[string]*scriptfile.Script{}}
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

// keepScript keeps a script that was looked at.
func (m *models) keepScript(path string, s *scriptfile.Script) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scripts[path] = s
}

// script is one that was looked at, or one that the log of a run or a trusted file names.
func (m *models) script(path string) (*scriptfile.Script, error) {
	m.mu.Lock()
	s := m.scripts[path]
	m.mu.Unlock()
	if s != nil {
		return s, nil
	}
	return scriptfile.Load(path)
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
