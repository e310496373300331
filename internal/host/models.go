package host

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/model/scout"
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
		Prices: m.cfg.Prices, Transport: m.tapes.transport()})
	if err != nil {
		return c, fmt.Errorf("model: %w", err)
	}
	if named != m.tapes.model(named) {
		c.Why = "as it was recorded"
	}
	return m.keep(c), nil
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
