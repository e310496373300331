package node

import (
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/routes"
	"github.com/troupe-run/troupe/internal/trust"
)

// trustPolicy returns the policy that decides whose files a node with this configuration
// executes.
func (c Config) trustPolicy() trust.Policy {
	return trust.Policy{Roots: c.Roots, Places: c.Trust, StateDir: c.StateDir, Brought: c.brought, RequestsFromUser: c.requestsFromUser}
}

// ApproveRequest records that the user names the files of a request in a command: see
// trust.Policy.Approve.
func ApproveRequest(cfg Config, r client.RunRequest) error {
	return cfg.trustPolicy().ApproveRequest(r, func(route string) bool { _, own := cfg.Contributions.Models[route]; return own })
}

// BringPlaces records that the user's own command brings its directory: see trust.Policy.BringPlaces.
func BringPlaces(cfg Config, r client.RunRequest) error { return cfg.trustPolicy().BringPlaces(r) }

// BringDir records that the user's own command names the directory of a request: see trust.Policy.BringDir.
func BringDir(cfg Config, r client.RunRequest) error { return cfg.trustPolicy().BringDir(r) }

// approveModel approves the script of the node's own model: the operator names it when the node starts.
func (c Config) approveModel(t routes.Recordings) error {
	if c.NoActors {
		return nil // it replays no model
	}
	return ApproveRequest(c, client.RunRequest{Model: c.Model, Fallback: []string{t.DefaultRoute("")}})
}

// ApproveRequest is the function ApproveRequest with the node's own Config.
func (n *Node) ApproveRequest(r client.RunRequest) error { return ApproveRequest(n.cfg, r) }
