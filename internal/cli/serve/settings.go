package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/provider/catalog"
)

// errConfiguration marks errors in the configuration that the operator must fix.
var errConfiguration = errors.New("configuration")

// isSettled reports whether a flag was given, or this program has no flag of that name.
func isSettled(c *cobra.Command) func(string) bool {
	return func(flag string) bool {
		f := c.Flags().Lookup(flag)
		return f == nil || f.Changed
	}
}

// applySettings applies the settings and checks the arguments.
func (n *program) applySettings(c *cobra.Command) error {
	found, err := config.Load(config.SettingSources{Dir: ".", Settled: isSettled(c)})
	if err != nil {
		return err
	}
	for key, target := range map[string]*string{"model": &n.cfg.Model, "store_dir": &n.cfg.StateDir, "log_store": &n.cfg.LogStore, "pricing_file": &n.pricing, "requests_per_minute": &n.rates.requests, "tokens_per_minute": &n.rates.tokens, "retain_age": &n.retainAge, "retain_size": &n.retainSize,
		"otlp_endpoint": &n.cfg.Telemetry.Endpoint, "telemetry_content": &n.cfg.Telemetry.Content, "events_content": &n.cfg.EventsContent} {
		s, ok := found[key]
		if ok && !c.Flags().Changed(s.Flag()) {
			*target = s.Value
		}
	}
	if err := n.applyRunSettings(c, found); err != nil {
		return err
	}
	if n.cfg.Prices, err = catalog.LoadFile(n.pricing); err != nil {
		return fmt.Errorf("%w: --pricing-file: %w", errConfiguration, err)
	}
	var notes, more []agentfile.Note
	if n.cfg.Hooks, notes, err = agentfile.LoadHooks(config.UserFile()); err == nil && n.claudeFiles {
		n.cfg, more, err = n.cfg.WithClaudeFiles()
		notes = append(notes, more...)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errConfiguration, err)
	}
	for _, note := range notes {
		writeLine("note: " + note.String())
	}
	own, err := agentfile.LoadShared(config.UserFile())
	if err != nil {
		return fmt.Errorf("%w: %w", errConfiguration, err)
	}
	n.cfg.Guardrails, n.cfg.Tools, n.cfg.A2AAgents, n.cfg.DelegateCharges, n.cfg.UserSettings = own.Guardrails, own.Tools, own.A2AAgents, own.Charges, config.UserFile()
	n.cfg.Servers = filepath.Join(filepath.Dir(config.UserFile()), mcpclient.UserFileName)
	if err := n.checkDurability(); err != nil {
		return err
	}
	if err := statedir.CheckLogStore(n.cfg.LogStore); err != nil {
		return fmt.Errorf("%w: --log-store: %w", errConfiguration, err)
	}
	if n.output != "text" && n.output != "json" {
		return fmt.Errorf("%w: -o is text or json, not %q", errConfiguration, n.output)
	}
	if n.cfg.Port < localserver.FreePort || n.cfg.Port > 1<<16-1 {
		return fmt.Errorf("%w: --nats-port %d is not a port", errConfiguration, n.cfg.Port)
	}
	for flag, dirs := range map[string][]string{"--root": n.cfg.Roots, "--trust": n.cfg.Trust} {
		if err := makeAbsolute(flag, dirs); err != nil {
			return err
		}
	}
	n.cfg.Bus = n.cfg.Bus.FromEnv(os.Getenv)
	if err := n.checkAccess(); err != nil {
		return err
	}
	if err := n.checkPools(); err != nil {
		return err
	}
	for prefix, o := range map[string]*bus.Options{"TROUPE_SERVICE_": &n.cfg.ServiceBus, "TROUPE_SYSTEM_": &n.cfg.System} {
		for name, field := range map[string]*string{"CREDS": &o.Creds, "NKEY": &o.NKey, "USER": &o.User, "PASSWORD": &o.Password} {
			*field = cmp.Or(*field, os.Getenv(prefix+name))
		}
	}
	if err := n.checkServer(); err != nil {
		return err
	}
	n.cfg.Logger = n.logger()
	return n.applyServices()
}

// applyServices decides how the node serves HTTP, and how it exports agents.
func (n *program) applyServices() (err error) {
	if n.cfg.HTTP, err = n.http.config(n.cfg.Bus.NamesServer()); err != nil {
		return err
	}
	n.cfg.AgentsOnBus, err = n.agents.config()
	return err
}

func (n *program) logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if n.verbose {
		options.Level = slog.LevelDebug
	}
	if n.output == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

func (n *program) checkDurability() error {
	switch n.durability {
	case "sync":
	case "lazy":
		n.cfg.Lazy = true
	default:
		return fmt.Errorf("%w: --durability is sync or lazy, not %q", errConfiguration, n.durability)
	}
	return nil
}

// checkServer checks what the flags say about the server.
func (n *program) checkServer() error {
	if n.setup && !n.cfg.Bus.NamesServer() {
		return fmt.Errorf("%w: --setup needs a server: -s or --context", errConfiguration)
	}
	if m := n.cfg.Model; m != "" && !strings.HasPrefix(m, provider.Script+"/") { // a run reads its script
		if _, err := provider.Choose(context.Background(), provider.Config{Model: m, Env: os.Getenv}); errors.Is(err, provider.ErrName) {
			return fmt.Errorf("%w: --model: %w", errConfiguration, err)
		}
	}
	if p := n.cfg.Profile; p != "" && !slices.Contains(bus.AllProfiles(), p) {
		return fmt.Errorf("%w: --profile is one of %s, not %q", errConfiguration, profileNames(), p)
	}
	return nil
}

func (n *program) checkAccess() error {
	n.cfg.ConfigHome = localserver.ConfigHome(os.Getenv)
	if (n.cfg.OpenWatch || n.cfg.OpenControl) && n.cfg.Bus.NamesServer() {
		return fmt.Errorf("%w: --open-watch and --open-control configure the embedded server; permissions on the server of -s are set there", errConfiguration)
	}
	return nil
}

func (n *program) checkPools() error {
	for _, pool := range n.cfg.Pools {
		if err := names.CheckToken(pool); err != nil {
			return fmt.Errorf("%w: --pools: %w", errConfiguration, err)
		}
	}
	if len(n.cfg.Pools) > 0 && !n.cfg.Bus.NamesServer() {
		return fmt.Errorf("%w: --pools needs a server that nodes share: -s or --context; a node with a server of its own runs every agent", errConfiguration)
	}
	if n.cfg.PoolPatience < 0 {
		return fmt.Errorf("%w: --pool-patience %s", errConfiguration, n.cfg.PoolPatience)
	}
	return nil
}

// makeAbsolute makes directories of a flag absolute.
func makeAbsolute(flag string, dirs []string) error {
	for i, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errConfiguration, flag, err)
		}
		if info, err := os.Stat(abs); err != nil {
			return fmt.Errorf("%w: %s: %w", errConfiguration, flag, err)
		} else if !info.IsDir() {
			return fmt.Errorf("%w: %s %s is a file", errConfiguration, flag, dir)
		}
		dirs[i] = abs
	}
	return nil
}

// applyRunSettings applies the settings about runs.
func (n *program) applyRunSettings(c *cobra.Command, found map[string]config.Setting) (err error) {
	if s, ok := found["max_live_runs"]; ok && !c.Flags().Changed(s.Flag()) {
		if n.cfg.MaxLiveRuns, err = strconv.Atoi(s.Value); err != nil {
			return s.Error(err.Error())
		}
	}
	if s, ok := found["reconcile_every"]; ok && !c.Flags().Changed(s.Flag()) {
		if n.cfg.ReconcileEvery, err = time.ParseDuration(s.Value); err != nil {
			return err
		}
	}
	if n.cfg.ReconcileEvery < 0 {
		return fmt.Errorf("%w: --reconcile-every %s: 0 is the default", errConfiguration, n.cfg.ReconcileEvery)
	}
	if n.cfg.MaxLiveRuns < 0 || n.cfg.MaxQueuedRuns < 0 {
		return fmt.Errorf("%w: --max-live-runs and --max-queued-runs must not be negative: 0 is the default", errConfiguration)
	}
	if n.cfg.RequestRates, n.cfg.TokenRates, err = config.ParseRates(n.rates.requests, n.rates.tokens); err != nil {
		return err
	}
	n.cfg.RetainAge, n.cfg.RetainBytes, err = config.ParseRetention(n.retainAge, n.retainSize)
	return err
}
