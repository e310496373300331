package node

import (
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/routes"
	"github.com/troupe-run/troupe/internal/trust"
)

// trustPolicy returns the policy that decides whose files a node with this configuration
// executes.
func (c Config) trustPolicy() trust.Policy {
	return trust.Policy{Roots: c.Roots, Places: c.Trust, StateDir: c.StateDir, OwnHand: c.requestsFromUser}
}

// Approve records that the user names the files of a request in a command: see
// trust.Policy.Approve.
func Approve(cfg Config, r client.RunRequest) error {
	return cfg.trustPolicy().Approve(r, func(route string) bool { _, own := cfg.Own.Models[route]; return own })
}

// approveModel approves the script of the node's own model: the operator names it when the node starts.
func (c Config) approveModel(t routes.Recordings) error {
	if c.Still {
		return nil // it replays no model
	}
	return Approve(c, client.RunRequest{Model: c.Model, Fallback: []string{t.Model("")}})
}

// Approve is Approve for a request of the program that embeds the node.
func (h *Node) Approve(r client.RunRequest) error { return Approve(h.cfg, r) }
