package node

import (
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/routes"
	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/internal/workspace"
	"github.com/troupe-run/troupe/supervisor"
)

// PreviewRun returns what a run would be opened with, as far as this machine can tell: it
// starts, stores and sends nothing. Agents may name models for which there is no key here.
func PreviewRun(cfg Config, r client.RunRequest) (supervisor.Opened, client.RunAccepted, error) {
	return newPreviewNode(cfg, r).buildRun(r)
}

// PreviewIgnored returns the parts of agent files that a run would ignore, as far as this machine can tell.
func PreviewIgnored(cfg Config, r client.RunRequest) ([]runspec.IgnoredParts, error) {
	return runspec.FindIgnored(newPreviewNode(cfg, r).builder, r)
}

// newPreviewNode returns a node that starts nothing and may read what the request of its user names.
func newPreviewNode(cfg Config, r client.RunRequest) *Node {
	cfg = cfg.withDefaults()
	env := cfg.Env
	cfg.Env = func(name string) string {
		if v := env(name); v != "" || !strings.HasSuffix(name, "_API_KEY") {
			return v
		}
		return "preview" // a placeholder: no request is sent
	}
	for _, dir := range []string{r.Dir, r.Agents, r.MCPConfig} {
		if dir != "" {
			cfg.Roots = append(cfg.Roots, dir)
		}
	}
	cfg.requestsFromUser = true
	h := &Node{cfg: cfg, routes: cfg.newRoutes(routes.Recordings{}), directories: &workspace.Directories{}}
	h.assembleBuilders()
	return h
}
