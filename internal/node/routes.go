package node

import (
	"github.com/troupe-run/troupe/internal/routes"
)

// newRoutes makes the resolver of models' clients.
func (c Config) newRoutes(recordings routes.Recordings) *routes.Resolver {
	return routes.New(routes.Config{Model: c.Model, NoScout: c.NoScout, Own: c.Contributions.Models, Prices: c.Prices, RequestRates: c.RequestRates, TokenRates: c.TokenRates, Env: c.Env, Trust: c.trustPolicy(), Mask: c.newMasker(), Recordings: recordings})
}

// CountReplayed returns how many recorded exchanges were replayed, and how many there are; none if
// this node does not replay.
func (n *Node) CountReplayed() (played, all int) { return n.recordings.CountReplayed() }
