package host

import (
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// Preview is what a run would be opened with, as far as this machine can say:
// nothing is started, stored or sent. Agents may name models for which there is
// no key here.
func Preview(cfg Config, r client.RunRequest) (supervisor.Opened, client.RunAccepted, error) {
	cfg = cfg.withDefaults()
	env := cfg.Env
	cfg.Env = func(name string) string {
		if v := env(name); v != "" || !strings.HasSuffix(name, "_API_KEY") {
			return v
		}
		return "preview" // nothing is asked
	}
	for _, dir := range []string{r.Dir, r.Agents, r.MCPConfig} {
		if dir != "" {
			cfg.Roots = append(cfg.Roots, dir)
		}
	}
	cfg.ownHand = true
	h := &Host{cfg: cfg, models: newModels(cfg, tapes{}, exits{cfg.secrets()})}
	return h.build(r)
}
