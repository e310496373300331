package troupe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/dispatcher"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Agent defines one agent, like an agent file (docs/agentfiles.md says what each key means). A struct literal sets:
//
//	Name, Description, Prompt string // required: who it is, when to delegate to it, its system prompt
//	Model           string           // PROVIDER/MODEL; "": that of the run
//	Fallback        []string         // models that are tried next, in this order
//	Tools           []ToolRef        // nil: all that its parent has; empty: none
//	DisallowedTools []ToolRef
//	Delegates       []string         // agents that it may call; nil: not said; empty: none
//	Handoffs        []string         // agents to which it may hand off its conversation
//	MaxTurns        int
//	Timeout         time.Duration
//	Budget          struct{ Tokens int64; USD float64 }
//	OutputSchema    string           // JSON text of a schema that its answer must satisfy
//	Constraints, Criteria, FailIf []string
//	Hooks           []spec.Hook      // at points of its loop: see Config.Hooks
//	LoopOptions     spec.LoopOptions
//
// For example:
//
//	troupe.Agent{Name: "reviewer", Description: "Reviews a change.", Prompt: "Look for missing tests.",
//		Tools: []troupe.ToolRef{{Name: "read_file"}, {Name: "grep"}}, MaxTurns: 12}
//
// The other fields are filled in from agent files.
type Agent = agentfile.Definition

// ToolRef names a tool that an Agent may use or not. Its fields are Name, such as "read_file" or "mcp__github__*", and
// Args, a pattern of arguments ("": any).
type ToolRef = agentfile.ToolRef

// HookFunc is a hook in Go: func(context.Context, HookCall) (spec.HookAnswer, error).
type HookFunc = hook.Func

// HookCall is the argument of a HookFunc. Its fields say where the hook is asked (Run, Agent, Parent, Name, Depth, Turn,
// Workspace), which one it is (Hook, a spec.Hook), an ID that is the same when it is asked again after a crash, and what
// it judges (Data, a spec.HookData).
type HookCall = hook.Call

// NATSOptions configures the connection to a NATS server: Servers is a comma-separated list of URLs, or Context the name of
// a nats CLI context; Creds and NKey are paths of credential files, User, Password and Token are credentials themselves,
// and TLSCert, TLSKey and TLSCA are paths of PEM files.
type NATSOptions = bus.Options

// Result is the outcome of a run: Text is the answer, Reason why the run ended, Partial whether it ended before it was
// done, CostUSD and Usage what it used, and Agents has one row for each agent.
type Result = event.Result

// Config of a Node. The zero value is a node without a directory, which keeps its logs only
// until Close. Start refuses agents that name unknown tools or delegates.
type Config struct {
	// Tools are the program's tools. Every agent may use them unless its definition excludes them. See tool.Func.
	Tools []tool.Tool
	// Agents take precedence over built-in agents of the same name. The first one gets tasks that name no agent.
	// Default: the built-in assistant, or with a builtin/ model the coordinator.
	Agents []Agent
	// Models are clients of the program's own, by PROVIDER/MODEL.
	Models map[string]model.Client
	// Model is for tasks that name none. Default: by the keys in the environment, or a local Ollama, or the model of
	// the agent that gets the task; where there is none, tasks are refused. "builtin/scout" is the model that
	// needs no key.
	Model string
	// Dir is the directory in which agents work. A task may name it or a directory below it. Default: none; then agents
	// have no file tools.
	Dir string
	// StateDir stores the logs. Start continues unfinished runs there. Only one process may use it. Default: a temporary
	// directory, which Close removes.
	StateDir string
	// LogStore is the log store of a new StateDir: "local" (files) or "jetstream" (streams of the NATS server in this
	// process). Default: local; an existing StateDir keeps its own, and Start refuses another.
	LogStore string
	// Bus is a NATS server that nodes share, instead of StateDir and a server in the process.
	// In this case, set Pools, too: all nodes of a pool must have the same tools.
	Bus   NATSOptions
	Pools []string
	// Listen opens the server in the process to others: to commands of the same user by a
	// socket in StateDir, and to observers on Port of loopback (default: a free one), with the
	// credential that Watch names. Default: only this program can connect.
	Listen bool
	Port   int
	// MaxLiveRuns is how many runs may be live at once, MaxQueuedRuns how many more may wait
	// in order; further runs are refused. Default: 2,000 and 10,000.
	MaxLiveRuns, MaxQueuedRuns int
	// RetainAge is how long a run stays in StateDir after its end. RetainBytes is the size of logs and blobs (bytes) above
	// which the oldest finished runs are removed. Default: 30 days and 2 GiB; a negative value is no limit.
	RetainAge   time.Duration
	RetainBytes int64
	// EventsContent is "full" or "none": whether observers on NATS receive events with the texts of people, models and
	// tools (docs/events.md). Default: full, and none on a server that nodes share (Bus).
	EventsContent string
	// RequestsPerMinute and TokensPerMinute are the most that models may get in a minute, of all nodes of a
	// Bus together, by PROVIDER for each of its models or by PROVIDER/MODEL (docs/throttling.md). Default:
	// what the provider allows.
	RequestsPerMinute, TokensPerMinute map[string]int64
	// Permissions are rules for every agent of every run, and the mode of tasks that name none. Rules use
	// troupe's tool names, such as shell(git log:*).
	Permissions spec.Permissions
	// Hooks run at points of every agent's loop; those without a command are functions of
	// HookFuncs, by name.
	Hooks []spec.Hook
	// Guardrails are ready guardrails for every agent of every run: see docs/guardrails.md.
	Guardrails []spec.ReadyGuardrail
	HookFuncs  map[string]HookFunc
	// Env reads the environment, which holds the keys. Default os.Getenv.
	Env func(string) string
	// Logger receives warnings and errors. Default: discard.
	Logger *slog.Logger
}

// Errors of Start and Run.
var (
	// ErrConfig: a tool, agent, model or hook of the Config is invalid.
	ErrConfig = node.ErrContribution
	// ErrIncomplete: the run ended without completing its task. The Result has the reason and
	// the partial answer.
	ErrIncomplete = errors.New("troupe: the run did not complete")
	// ErrParked: the run waits for a person. Client().Questions shows the question,
	// Client().Answer decides it, and Run with the same RunID waits on.
	ErrParked = errors.New("troupe: the run waits for a person")
	// ErrAnswer: the answer is not valid JSON for the requested type.
	ErrAnswer = errors.New("troupe: the answer does not decode")
)

// Node is a node inside the program. It is safe for concurrent use.
type Node struct {
	cfg    Config
	host   localNode
	client *client.Client
	temp   string                // directory to remove
	opens  dispatcher.Goroutines // that open runs
}

// Start starts a node. The caller must Close it.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	n := &Node{cfg: cfg, opens: dispatcher.NewGoroutines()}
	if cfg.Dir != "" {
		dir, err := filepath.Abs(cfg.Dir)
		if err != nil {
			return nil, fmt.Errorf("troupe: dir: %w", err)
		}
		n.cfg.Dir = dir
	}
	state := cfg.StateDir
	if state == "" && !cfg.Bus.NamesServer() {
		temp, err := os.MkdirTemp("", "troupe-")
		if err != nil {
			return nil, fmt.Errorf("troupe: %w", err)
		}
		n.temp, state = temp, temp
	}
	c := node.Config{Bus: cfg.Bus, StartServer: embedded.StartServer, Pools: cfg.Pools, StateDir: state, LogStore: cfg.LogStore, DontListen: !cfg.Listen, Port: cmp.Or(cfg.Port, embedded.FreePort), Lazy: n.temp != "", Model: cfg.Model, NoScout: true,
		Contributions: node.Contributions{Tools: cfg.Tools, Agents: cfg.Agents, Models: cfg.Models}, Permissions: cfg.Permissions, Hooks: cfg.Hooks, Guardrails: cfg.Guardrails, GoHooks: cfg.HookFuncs,
		MaxLiveRuns: cfg.MaxLiveRuns, MaxQueuedRuns: cfg.MaxQueuedRuns, RetainAge: cfg.RetainAge, RetainBytes: cfg.RetainBytes, EventsContent: cfg.EventsContent, RequestRates: cfg.RequestsPerMinute, TokenRates: cfg.TokensPerMinute, ResumeAll: n.temp == "", Env: cfg.Env, Logger: cfg.Logger}
	if n.cfg.Dir != "" {
		c.Roots = []string{n.cfg.Dir}
	}
	host, err := node.Start(ctx, c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("troupe: %w", err), n.removeTemp())
	}
	n.host = inProcess{host}
	if n.client, err = n.host.NewClient(); err != nil {
		return nil, errors.Join(fmt.Errorf("troupe: %w", err), n.Close())
	}
	return n, nil
}

// Run gives the node a task and waits for its result. The error is nil only if the run
// completed its task. If ctx ends first, Run cancels the run, waits up to 5 seconds for its end, and returns the result
// known by then: at least the run's id. If the task's RunID already exists, Run starts nothing new and waits for that
// run.
func (n *Node) Run(ctx context.Context, t Task) (Result, error) {
	// The goroutine of the caller keeps the largest stack that it has needed for as long as it waits: the functions that
	// are called here before and after the wait are not inlined, and the one that opens the run has its own goroutine.
	run, err := n.openElsewhere(ctx, &t)
	if err != nil {
		return notOpened(t.RunID, err)
	}
	state, result, err := run.Wait(ctx)
	return n.finishRun(ctx, run, state, result, err)
}

//go:noinline
func notOpened(id string, err error) (Result, error) {
	return Result{Run: id}, fmt.Errorf("troupe: %w", err)
}

// openElsewhere opens the run of a task on a goroutine whose stack has grown already: the caller's would keep its size
// while the run is waited for.
//
//go:noinline
func (n *Node) openElsewhere(ctx context.Context, t *Task) (run taskRun, err error) {
	opened := make(chan struct{})
	n.opens.Go(func() {
		defer close(opened)
		run, err = n.openRun(ctx, t)
	})
	<-opened
	return run, err
}

// openRun fills in the defaults of a task and opens its run.
func (n *Node) openRun(ctx context.Context, t *Task) (taskRun, error) {
	t.RunID = cmp.Or(t.RunID, client.NewID())
	r := t.request()
	r.Dir = cmp.Or(r.Dir, n.cfg.Dir)
	if r.Agent == "" && len(n.cfg.Agents) > 0 {
		switch handedOff, err := n.isHandedOff(ctx, r.Conversation); {
		case err != nil:
			return nil, err
		case !handedOff:
			r.Agent = n.cfg.Agents[0].Name
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := n.host.ApproveRequest(*r); err != nil { // the program itself names these files
		return nil, err
	}
	return n.host.openRun(ctx, n.client, r)
}

// isHandedOff reports whether an agent has handed off a conversation: the node then knows which one has it.
func (n *Node) isHandedOff(ctx context.Context, conversation string) (bool, error) {
	if conversation == "" {
		return false, nil
	}
	info, err := n.client.Conversations().Get(ctx, conversation)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == client.CodeNotFound { // it begins with this run
		return false, nil
	}
	return info.HandedTo != "", err
}

// finishRun returns the result of a run whose wait has ended.
//
//go:noinline
func (n *Node) finishRun(ctx context.Context, run taskRun, state client.RunState, result *Result, err error) (Result, error) {
	run.Close()
	id := run.ID()
	switch {
	case err != nil && ctx.Err() != nil:
		result, stopErr := n.stopRun(ctx, id, "the caller's context ended")
		return result, fmt.Errorf("troupe: run %s: %w", id, errors.Join(context.Cause(ctx), stopErr))
	case err != nil:
		return Result{Run: id}, fmt.Errorf("troupe: run %s: %w", id, err)
	case result == nil:
		return Result{Run: id}, fmt.Errorf("%w: run %s is %s", ErrIncomplete, id, state)
	case state == client.RunParked:
		return *result, fmt.Errorf("%w: run %s: %s", ErrParked, id, result.Detail)
	case result.IsError:
		return *result, fmt.Errorf("%w: run %s: %s: %s", ErrIncomplete, id, result.Reason, result.Detail)
	}
	return *result, nil
}

// cancelPatience is how long Run waits for the end of a run that it cancels.
const cancelPatience = 5 * time.Second

// stopRun cancels a run for which its caller no longer waits, and returns its result. A run that has not
// ended in time has a result without a reason.
func (n *Node) stopRun(ctx context.Context, run, why string) (Result, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelPatience)
	defer stop()
	if _, err := n.client.Cancel(ctx, client.CancelRequest{RunID: run, Now: true, Why: why, WaitMS: -1}); err != nil {
		return Result{Run: run}, err
	}
	info, err := n.client.Wait(ctx, run)
	if info.Result == nil {
		return Result{Run: run}, err
	}
	return *info.Result, nil
}

// logger returns the logger of the Config.
func (n *Node) logger() *slog.Logger {
	if n.cfg.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return n.cfg.Logger
}

// Client returns a client of the node: it lists, watches, steers, cancels and answers.
// Close of the Node closes it.
func (n *Node) Client() *client.Client { return n.client }

// URL returns the address of the server in the process; "" without Config.Listen, and for a
// server elsewhere.
func (n *Node) URL() string { return n.host.URL() }

// Watch returns the command that observes this node, without its arguments, as in
// XDG_CONFIG_HOME='/state' nats --context troupe; "" where URL is.
func (n *Node) Watch() string { return n.host.WatchCommand() }

// Close stops the node. Work in progress continues at the next start on the same StateDir,
// or on another node.
func (n *Node) Close() error { return errors.Join(n.host.Close(), n.removeTemp()) }

func (n *Node) removeTemp() error {
	if n.temp == "" {
		return nil
	}
	return os.RemoveAll(n.temp)
}
