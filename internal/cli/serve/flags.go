package serve

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/telemetry"
)

// drainTimeout is how long a node that received a stop signal waits for its models and
// tools; a tool may take a minute.
const drainTimeout = 75 * time.Second

// command makes the command with its flags.
func (n *program) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "troupe-node",
		Short: "Run a troupe node",
		Long: `Run a troupe node: with a NATS server of its own, or on the one that -s, --context
or NATS_URL name. It continues the unfinished runs of its state directory.

Clients may name only directories under --root. SIGTERM or Ctrl-C stops the node in
order: what is under way comes to its end, then other nodes, or the next one on the
same state directory, go on. A second signal kills.

Exit codes: 0 stopped, 1 failed, 2 usage or configuration, 6 no NATS or JetStream.`,
		Example: `  troupe-node --root ~/src
  troupe-node --store-dir /var/lib/troupe --root /srv/repos --model anthropic/claude-sonnet-5-5
  troupe-node --root ~/src --http 0.0.0.0:8420 --http-host troupe.example.org --http-token-file token
  troupe-node -s nats://n1,nats://n2,nats://n3 --nkey setup.nk --setup --replicas 3 --pools default,host-rack7
  troupe-node -s nats://n1,nats://n2,nats://n3 --nkey node.nk --service-nkey service.nk --system-nkey system.nk --machine rack7 --root /srv/repos`,
		SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("troupe-node takes no arguments, not %q", args[0])
			}
			return nil
		},
		PreRunE: func(c *cobra.Command, _ []string) error { return n.applySettings(c) },
		RunE:    func(*cobra.Command, []string) error { return n.serveUntilSignal() },
	}
	f := c.Flags()
	n.addPlaceFlags(f)
	n.addServerFlags(f)
	n.addConnectionFlags(f)
	n.addAccessFlags(f)
	n.addNodeFlags(f)
	n.addRunFlags(f)
	n.http.addFlags(f)
	n.agents.addFlags(f)
	return c
}

// addPlaceFlags adds the flags that name directories and files of this machine.
func (n *program) addPlaceFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&n.cfg.Roots, "root", nil,
		"directory that clients may use, with everything below it; may be repeated")
	f.StringSliceVar(&n.cfg.Trust, "trust", nil,
		"directory outside the roots from which requests may use agent files, MCP server files and scripts, including "+
			"their commands; may be repeated")
	f.StringVar(&n.cfg.StateDir, "store-dir", "", "state directory (default XDG_STATE_HOME/troupe)")
	f.BoolVar(&n.claudeFiles, "claude-files", false,
		"apply ~/.claude of the user who runs this node: rules that deny or ask and hooks to all runs; rules that allow, "+
			"env and CLAUDE.md to runs that troupe run of this user starts with the same --store-dir")
	f.StringVar(&n.cfg.LogStore, "log-store", "",
		"log store for a new state directory: local (files) or jetstream (streams of the embedded server) (default "+
			"local; an existing directory keeps its own)")
	f.StringVar(&n.pricing, "pricing-file", "",
		"model prices as models.dev (api.json) or LiteLLM JSON; takes precedence over the built-in list")
}

// addServerFlags adds the flags about the server and what it must promise.
func (n *program) addServerFlags(f *pflag.FlagSet) {
	f.IntVar(&n.cfg.Port, "nats-port", 0, "port of the embedded server (default 4222 or else a free one)")
	f.StringVar(&n.durability, "durability", "sync",
		"sync survives the loss of power, lazy only the death of the process; of the server of -s: whether it must sync "+
			"each write")
	f.StringVar((*string)(&n.cfg.Profile), "profile", "", "refuse to start unless the server has this durability profile: "+profileNames())
	f.StringSliceVar(&n.cfg.Monitor, "monitor", nil,
		"monitoring addresses of the servers of -s (http://HOST:8222), which say whether they sync")
	f.BoolVar(&n.setup, "setup", false,
		"create streams and buckets on the server of -s, then exit; nodes then need no create permission")
	f.IntVar(&n.replicas, "replicas", 1, "with --setup: copies of each, 3 in a cluster")
	f.DurationVar(&n.cfg.ServerWait, "server-wait", 0,
		"how long to wait at the start until the servers of -s have leaders (default 2m)")
}

// addConnectionFlags adds the flags of three sets of credentials: those of the node, those of the
// connection that answers requests, and those of the system account.
func (n *program) addConnectionFlags(f *pflag.FlagSet) {
	sys := &n.cfg.System
	f.StringVar(&sys.Creds, "system-creds", "",
		"credentials file of the system account of -s, which can report whether the servers sync (TROUPE_SYSTEM_CREDS)")
	f.StringVar(&sys.NKey, "system-nkey", "", "nkey seed file of the system account (TROUPE_SYSTEM_NKEY)")
	f.StringVar(&sys.User, "system-user", "", "user name of the system account (TROUPE_SYSTEM_USER)")
	f.StringVar(&sys.Password, "system-password", "", "its password (TROUPE_SYSTEM_PASSWORD)")
	o := &n.cfg.Bus
	f.StringVarP(&o.Servers, "server", "s", "", "NATS server URLs (NATS_URL)")
	f.StringVar(&o.Context, "context", "", "nats CLI context (NATS_CONTEXT)")
	f.StringVar(&o.Creds, "creds", "", "user credentials file (NATS_CREDS)")
	f.StringVar(&o.NKey, "nkey", "", "user nkey seed file (NATS_NKEY)")
	f.StringVar(&o.User, "user", "", "user name, or token without --password (NATS_USER)")
	f.StringVar(&o.Password, "password", "", "password (NATS_PASSWORD)")
	f.StringVar(&o.Token, "token", "", "token (NATS_TOKEN)")
	d := &n.cfg.ServiceBus
	f.StringVar(&d.Creds, "service-creds", "",
		"user credentials file of the connection that answers requests (TROUPE_SERVICE_CREDS)")
	f.StringVar(&d.NKey, "service-nkey", "", "nkey seed file of that connection (TROUPE_SERVICE_NKEY)")
	f.StringVar(&d.User, "service-user", "", "user name of that connection (TROUPE_SERVICE_USER)")
	f.StringVar(&d.Password, "service-password", "", "its password (TROUPE_SERVICE_PASSWORD)")
	addTLSFlags(f, o)
}

// EventsContentUsage describes --events-content.
const EventsContentUsage = "texts of people, models and tools in events for observers: full, or none (default full on a server of its own, none on a server that nodes share)"

// addNodeFlags adds the flags about the node itself.
func (n *program) addNodeFlags(f *pflag.FlagSet) {
	f.DurationVar(&n.drain, "drain-timeout", drainTimeout, "how long to wait at the end for work in progress")
	f.StringVar(&n.cfg.Name, "name", "", "name of the node, at most 64 bytes (default the host's)")
	f.StringSliceVar(&n.cfg.Pools, "pools", nil,
		"pools whose agents this node runs, on a server that nodes share (default \"default\"); with --root also that of "+
			"its machine")
	f.StringVar(&n.cfg.Machine, "machine", "", "name of the machine, the same for all its nodes (default the host's)")
	f.DurationVar(&n.cfg.ReconcileEvery, "reconcile-every", 0,
		"how often the node looks for unfinished runs that no node owns (default 5m)")
	f.DurationVar(&n.cfg.PoolPatience, "pool-patience", 0,
		"how long a pool may be without a node until its agents are given up (default 10m)")
	f.StringVarP(&n.cfg.Model, "model", "m", "", "model for runs that name none, PROVIDER/MODEL")
	f.BoolVarP(&n.verbose, "verbose", "v", false, "log everything")
	f.StringVarP(&n.output, "output", "o", "text", "form of the ready line and the log: text, json")
	f.StringVar(&n.cfg.Telemetry.Endpoint, "otlp-endpoint", "", telemetry.EndpointUsage)
	f.StringVar(&n.cfg.Telemetry.Content, "telemetry-content", "", telemetry.ContentUsage)
	f.StringVar(&n.cfg.EventsContent, "events-content", "", EventsContentUsage)
	f.DurationVar(&n.cfg.LeaseTTL, "lease-ttl", 0,
		"how long a node may be silent on a shared server before others take over, whole seconds (default 20s)")
	f.DurationVar(&n.cfg.IdleTimeout, "linger", 0,
		"how long an agent that waits for a person, a child or the clock stays in memory (default 1m)")
}

// addTLSFlags adds the TLS flags of the nats CLI.
func addTLSFlags(f *pflag.FlagSet, o *bus.Options) {
	f.StringVar(&o.TLSCert, "tlscert", "", "TLS certificate (NATS_CERT)")
	f.StringVar(&o.TLSKey, "tlskey", "", "TLS private key (NATS_KEY)")
	f.StringVar(&o.TLSCA, "tlsca", "", "TLS certificate authority (NATS_CA)")
}

func profileNames() string {
	var names []string
	for _, p := range bus.AllProfiles() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

// addAccessFlags adds the flags that open the embedded server.
func (n *program) addAccessFlags(f *pflag.FlagSet) {
	f.BoolVar(&n.cfg.OpenWatch, "open-watch", false, "on the embedded server: "+localserver.OpenWatchUsage)
	f.BoolVar(&n.cfg.OpenControl, "open-control", false, "on the embedded server: "+localserver.OpenControlUsage)
}

// addRunFlags adds the flags that bound the runs of the node.
func (n *program) addRunFlags(f *pflag.FlagSet) {
	f.IntVar(&n.cfg.MaxLiveRuns, "max-live-runs", 0, fmt.Sprintf("maximum live runs on this node; later ones are queued (default %d)", node.MaxLiveRuns))
	f.StringVar(&n.retainAge, "retain-age", "",
		"how long a run stays after its end, such as 36h, 30d or 8w; off: keep forever (default 30d)")
	f.StringVar(&n.retainSize, "retain-size", "",
		"total size of logs and blobs before the oldest runs are removed, such as 500MiB; off: unlimited (default 2GiB)")
	f.IntVar(&n.cfg.MaxQueuedRuns, "max-queued-runs", 0, fmt.Sprintf("maximum queued runs; further ones are refused (default %d)", node.MaxQueuedRuns))
	f.StringVar(&n.rates.requests, "requests-per-minute", "", config.RequestRatesUsage)
	f.StringVar(&n.rates.tokens, "tokens-per-minute", "", config.TokenRatesUsage)
}
