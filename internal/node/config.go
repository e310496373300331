package node

import (
	"cmp"
	"log/slog"
	"os"
	"time"

	"github.com/troupe-run/troupe/agent/spec"

	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/internal/telemetry"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/mailbox"
)

// Config of a Node. With StartServer alone it is an embedded server in the user's state
// directory, without any directory that clients may name.
type Config struct {
	// Bus selects an external NATS server. If it names none, the node starts an embedded server.
	Bus bus.Options
	// ServiceBus holds the credentials of the connection that answers requests, on the same
	// server: they should not allow writing logs, leases and events. Default: Bus.
	ServiceBus bus.Options
	// StartServer starts the embedded server: embedded.StartServer. Default: there is none, and Bus must name a server.
	StartServer localserver.StartFunc
	// StateDir of the embedded server. Default XDG_STATE_HOME/troupe.
	StateDir string
	// LogStore is where a new StateDir keeps its logs: statedir.LogsInJetStream or LogsInFiles. One
	// that keeps them elsewhere is refused. Default: where it keeps them, or
	// statedir.DefaultLogStore.
	LogStore string
	// Port of the embedded server: 0 is 4222 or else a free one.
	Port int
	// Lazy gives up durability against a crash of the machine.
	Lazy bool
	// DontListen: the embedded server has no port and no socket. NoPort: it has only
	// the socket, for commands of the same user.
	DontListen, NoPort bool
	// ConfigHome is where the embedded server writes the nats CLI context of
	// observers. Default: the state directory.
	ConfigHome string
	// OpenWatch lets clients without a credential read events of the embedded server, and
	// OpenControl lets them send requests as well.
	OpenWatch, OpenControl bool
	// Profile is the durability profile that the server must be seen to have, or the node does
	// not start. Default: whichever profile it has, as far as that can be seen.
	Profile bus.Profile
	// System is a credential of the system account of an external server, and Monitor are the
	// monitoring addresses of its servers: either shows whether the servers sync what they
	// store. Default: that stays unproven.
	System  bus.Options
	Monitor []string
	// Roots are the directories that clients may name.
	Roots []string
	// Trust are places whose agent files, files of MCP servers and scripts requests may name
	// with everything that these define: command lines, hooks, programs. None may be in a
	// root, where runs write.
	Trust []string
	// SearchParentDirs lets agents read a project's instructions above the directory that a run
	// names, up to the top of its repository: for a node in the user's own process.
	SearchParentDirs bool
	// Name of the node, at most names.NodeNameBytesMax long. Default: the host's name.
	Name string
	// Pools are the pools whose agents this node runs, on a shared server. Default "default",
	// and that of the machine if there are Roots.
	Pools []string
	// Machine names the pool of the runs that have a directory here: all nodes of
	// one machine must have the same. Default: the host's name.
	Machine string
	// PoolPatience is how long a pool may be without a node before its agents are given up.
	// Default PoolPatienceDefault.
	PoolPatience time.Duration
	// ReconcileEvery is how often the node looks for unfinished runs that no node owns, if it continues all runs.
	// Default ReconcileEveryDefault.
	ReconcileEvery time.Duration
	// LeaseTTL is how long a node on a shared server may be silent before other nodes take
	// over its shards: whole seconds. Default shard.TTLDefault.
	LeaseTTL time.Duration
	// ServerWait is how long the start waits until JetStream, its streams and buckets have
	// leaders, on a shared server. Default ServerWaitDefault.
	ServerWait time.Duration
	// At most MaxLiveRuns runs are live here, and MaxQueuedRuns wait. Default: the constants.
	MaxLiveRuns, MaxQueuedRuns int
	// RetainAge is how long a run stays after its end; RetainBytes is how much logs and blobs may hold together until the
	// oldest runs go (docs/operating.md). Default: 30 days and 2 GiB; a negative one is no limit.
	RetainAge   time.Duration
	RetainBytes int64
	// RequestRates and TokenRates are the requests and tokens a minute that models may get, of all nodes together
	// (docs/throttling.md). Default: as many as the provider allows.
	RequestRates, TokenRates throttle.RateTable
	// IdleTimeout is how long an idle actor stays in memory. Default actors.IdleTimeoutDefault.
	IdleTimeout time.Duration
	// Model is the route to use when a request names none ("provider/model").
	Model string
	// NoScout refuses a run that names no model if nothing else is found, instead of the choice of builtin/scout.
	NoScout bool
	// Prices are the operator's facts about prices and limits of models (catalog.LoadFile).
	Prices catalog.FactTable
	// Tools are the operator's rules about tools; they take precedence over what the tools
	// declare.
	Tools []agentfile.ToolRule
	// A2AAgents are the agents of the protocol A2A that the operator's settings name (docs/a2a.md). Default none.
	A2AAgents []a2aclient.Agent
	// DelegateCharges is what is charged for agents of other programs, in US dollars by name or
	// pattern (docs/agentprotocol.md).
	DelegateCharges map[string]float64
	// Servers is the file in which the operator names MCP servers. Default none.
	Servers string
	// Env reads the environment. Default os.Getenv.
	Env func(string) string
	// Record is a directory in which to record the exchanges with models, as sent over the
	// wire; Replay is one from which to replay them, without keys or network. At most one.
	Record, Replay string
	// Environ is the whole environment, NAME=value: values of names that suggest secrets are
	// masked at every exit. Default os.Environ, if Env is the default, too.
	Environ []string
	// Permissions are the operator's own, for every agent of every run; UserSettings replaces them.
	Permissions spec.Permissions
	// UserSettings is the settings file of the user who runs the node. Its permission rules, and the user's rules for
	// single directories beside it, are read again for each new run. Default: none.
	UserSettings string
	// Hooks are the operator's own, for every agent of every run. Those without a command are
	// functions of GoHooks.
	Hooks []spec.Hook
	// Guardrails are ready guardrails for every agent of every run.
	Guardrails []spec.ReadyGuardrail
	GoHooks    map[string]hook.Func
	// Contributions holds what the program that embeds the node contributes.
	Contributions Contributions
	// EventsContent says whether observers receive events with the texts of people, models and tools: EventsFull or
	// EventsWithoutTexts. Default: in full from an embedded server, without texts from a server that nodes share.
	EventsContent string
	// ResumeAll resumes every unfinished run; otherwise the node resumes only those that are
	// asked for.
	ResumeAll bool
	// requestsFromUser: requests come from the user in this same process, so the user has chosen
	// what they name.
	requestsFromUser bool
	// ClaudeHome is the directory of the user's own files of Claude Code, and CommandEnv are the variables (NAME=value)
	// of its settings for commands: see WithClaudeFiles. Default: the node reads none.
	ClaudeHome string
	CommandEnv []string
	// UserDirs: another command of the user of the state directory may bring its directory, also outside
	// of Roots. Requests of other clients may not.
	UserDirs bool
	// brought are the directories that were brought.
	brought *trust.BroughtDirs
	// watchRequests wraps the logs that requests read: tests count the reads. Default: as they are.
	watchRequests func(mailbox.Store) mailbox.Store
	// now is the clock of retention: tests move it. Default: time.Now.
	now func() time.Time
	// NoActors: the node runs no actors. It reads logs for clients, and appends commands for the
	// next owner.
	NoActors bool
	// HTTP is how the node serves HTTP. Default: it does not.
	HTTP *HTTPConfig
	// AgentsOnBus is how the node exports its agents by the Synadia Agent Protocol. Default: it does not.
	AgentsOnBus *AgentsOnBus
	// OnConnectionLost is called once, with ErrConnectionClosed, if the server closes a connection of the node for good:
	// the node can do nothing more, and its process should end. It must not block. Default: the node is left as it is, and
	// says so at /healthz.
	OnConnectionLost func(error)
	// Telemetry says where spans go. Default: as the variables of OpenTelemetry in the environment say.
	Telemetry telemetry.Settings
	Logger    *slog.Logger // default: discard
}

func (c Config) withDefaults() Config {
	c.Environ = resolveEnviron(c)
	if c.Env == nil {
		c.Env = os.Getenv
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Machine == "" {
		c.Machine, _ = os.Hostname() // empty without one
	}
	c.Name = cmp.Or(c.Name, clip.Prefix(c.Machine, names.NodeNameBytesMax)) // else the default of actors holds
	c.Pools = c.servedPools()
	if c.UserDirs && c.brought == nil {
		c.brought = &trust.BroughtDirs{}
	}
	c.PoolPatience = cmp.Or(c.PoolPatience, PoolPatienceDefault)
	c.ServerWait = cmp.Or(c.ServerWait, ServerWaitDefault)
	return c
}

func (c Config) checkName() error { return names.CheckNodeName(c.Name) }
