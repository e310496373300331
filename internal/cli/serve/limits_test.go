package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/config"
)

const (
	onlyHere = "- a node in a command of yours has the default"
	noLimit  = "- it limits nothing"
)

// nodeLimits are the limits of a node by their flags, with their settings, or the reason why there is none.
var nodeLimits = map[string]string{
	"max-live-runs": "max_live_runs", "retain-age": "retain_age", "retain-size": "retain_size", "reconcile-every": "reconcile_every",
	"requests-per-minute": "requests_per_minute", "tokens-per-minute": "tokens_per_minute",
	"max-queued-runs": onlyHere, "linger": onlyHere, "drain-timeout": onlyHere,
	"pool-patience": "- pools are of nodes that share a server", "lease-ttl": "- of nodes that share a server", "server-wait": "- of nodes that share a server",
	"nats-port": noLimit, "replicas": noLimit,
}

// Each number and each duration that troupe-node takes is in the table, with its setting or the reason why there is none,
// and docs/limits.md has it.
func TestEveryLimitOfANodeHasItsDoors(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	flags, settings := (&program{}).command().Flags(), config.SettingsSchema().Properties
	for flag, setting := range nodeLimits {
		hasReason := strings.HasPrefix(setting, "- ")
		switch {
		case flags.Lookup(flag) == nil:
			t.Errorf("there is no flag --%s", flag)
		case !hasReason && settings[setting] == nil:
			t.Errorf("--%s: there is no setting %s", flag, setting)
		case setting != noLimit && !strings.Contains(string(docs), "`"+flag+"`"):
			t.Errorf("docs/limits.md does not name --%s", flag)
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "int", "int64", "float64", "duration":
			if nodeLimits[f.Name] == "" {
				t.Errorf("--%s is a number or a duration, and the table does not have it", f.Name)
			}
		}
	})
}
