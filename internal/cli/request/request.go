// Package request makes the request for a run from flags, settings and files, and sends it to
// a node.
package request

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/amount"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/model"
)

// Origins records of settings who set them, where that decides what they may do.
type Origins struct {
	TokensByDirectory bool // the file of a directory has raised the limit on tokens
	// SchemaBelow is the directory that names the file of --json-schema; "": the user does.
	SchemaBelow string
}

// promptMax bounds the bytes that are read as a prompt: more than a node accepts,
// so that the node reports a prompt that is too long.
const promptMax = 256 << 10

// Flags are the flags of run and start.
type Flags struct {
	Request         client.RunRequest
	goal            goalFlags
	timeout         time.Duration
	patience        time.Duration // with a model that throttles all callers
	questionTimeout time.Duration
	parkTimeout     time.Duration
	backlogLease    time.Duration
	LogPatience     time.Duration // with a log that cannot be written
	temperature     float64
	Resume          string
	history         string
	layers          []string
	policyFile      string
	imported        *history.Transcript // of the file history
	KeepsHolder     bool                // the agent of the request gets the prompt only if the conversation was not handed off
	Detach          bool
	Copy            string // directory that was copied for a fork, until a node may have accepted the run
	MaxLiveRuns     int    // runs of a node in this process
	attachPaths     []string
	attachments     []attachment // the files attach
}

// AddFlags adds the flags that run and start have in common.
func (r *Flags) AddFlags(f *pflag.FlagSet) {
	q := &r.Request
	f.StringVar(&q.Agent, "agent", "", "agent that gets the task (default assistant; coordinator with builtin/scout)")
	f.StringVar(&q.Agents, "agents", "", "directory of agent files")
	f.StringVar(&q.Dir, "dir", "", "directory that the agents work in (default none)")
	f.StringVar(&q.MCPConfig, "mcp-config", "", "MCP server config file (takes precedence over all others)")
	f.StringVarP(&q.Model, "model", "m", "", "model, PROVIDER/MODEL, or script/FILE for replies from a file (default: by the keys in the environment)")
	f.IntVar(&q.MaxTurns, "max-turns", 0, "most turns of the root agent (default 20)")
	f.Var(amount.Tokens{Into: &q.MaxTokens}, "max-tokens", "most tokens of the whole tree, such as 200000, 200k or 1.5M (default 120,000 for builtin/scout, else 1,000,000)")
	f.Var(amount.USD{Into: &q.MaxBudgetUSD}, "max-budget-usd", "most US dollars of the whole tree, such as 0.5 or '$2' (default 1 with a paid key; --max-tokens alone removes this default)")
	f.StringArrayVar(&r.attachPaths, "attach", nil, fmt.Sprintf("image, PDF or text file to send with the prompt, at most %d of %d bytes each; may be repeated", model.MediaMax, model.MediaBytesMax))
	f.StringSliceVar(&q.AllowUnbounded, "allow-unbounded", nil, "models that may get attachments although the maximum cost of one is not published, PROVIDER/MODEL")
	f.StringSliceVar(&q.AllowUnpriced, "allow-unpriced", nil, "models that may be called under --max-budget-usd although their price is unknown, PROVIDER/MODEL")
	f.Int64Var(&q.MaxToolCalls, "max-tool-calls", 0, "most tool calls of the whole tree (default 200)")
	f.IntVar(&q.MaxDepth, "max-depth", 0, "how deep agents may delegate (default 3)")
	f.IntVar(&q.MaxMessages, "max-messages", 0, "most messages between the agents of the run (default 128)")
	f.IntVar(&q.MaxChildren, "max-children", 0, "most live children of one agent (default 8)")
	f.IntVar(&q.MaxAgents, "max-agents", 0, "most agents of the whole tree (default 128)")
	f.IntVar(&q.MaxBacklog, "max-backlog", 0, "most tasks that the shared backlog of the run may ever have (default 256)")
	f.DurationVar(&r.backlogLease, "backlog-lease", 0, "how long a claim of a task of the shared backlog lasts after the last message of its agent (default 30m)")
	r.addAgentLimits(f)
	f.DurationVar(&r.timeout, "timeout", 0, "working time after which an agent must summarize and end (default 15m); with --resume it counts from now")
	f.Float64Var(&r.temperature, "temperature", 0, "temperature of the model (default the provider's)")
	f.StringVar(&q.Effort, "effort", "", "reasoning effort: low, medium, high")
	f.StringVar(&q.Priority, "priority", "", "priority among runs that wait for a throttled model: high, normal, low (default normal)")
	f.StringSliceVar(&q.AllowedTools, "allowed-tools", nil, "grant only these tools, comma-separated; 'Write(docs/**)' also allows such calls without asking")
	f.StringSliceVar(&q.DisallowedTools, "disallowed-tools", nil, "deny these tools, comma-separated; 'Bash(rm:*)' and 'Read(./secrets/**)' deny only such calls")
	f.StringSliceVar(&q.AskTools, "ask-tools", nil, "ask before calls that match these rules, comma-separated, such as 'Bash(git push:*)'")
	f.StringVar(&q.PermissionMode, "permission-mode", "", "what happens to calls that no rule matches: default, acceptEdits, plan, dontAsk, bypassPermissions")
	f.BoolVar(&q.Unattended, "unattended", false, "ask no questions: calls that need an approval are denied, and an agent "+
		"that cannot continue without a person ends (--permission-mode dontAsk implies it)")
	f.IntVar(&q.Approvals, "approvals", 0, "how many different people must approve a call that is asked about: 1 or 2 (default: permissions.approvals of your settings, or 1)")
	f.StringVar(&q.Taint, "taint", "", "what holds for calls that send data out once an agent has read text from outside: ask, deny, off (default: permissions.taint of your settings, or off)")
	f.BoolVar(&q.TaintFiles, "taint-files", false, "files of the directory, and what commands print, are text from outside")
	f.BoolVar(&q.Outside, "outside", false, "treat the prompt as text from outside, such as an issue that a stranger wrote")
	f.DurationVar(&r.questionTimeout, "question-timeout", 0, "how long a question to a person stays open before it counts as denied (default: as long as the run may be parked, see --park-timeout)")
	f.DurationVar(&r.parkTimeout, "park-timeout", 0, "how long the run may wait for people alone before it ends as unanswered (default 720h)")
	f.BoolVar(&q.NoAgentsMD, "no-agents-md", false, "do not add AGENTS.md or CLAUDE.md to the prompts, the project's or your own")
	f.BoolVar(&q.Yes, "yes", false, "do not ask before writes in the directory, MCP tools, and commands that the sandbox confines")
	f.StringVar(&q.Conversation, conversationFlag, "", "conversation to continue or begin: the run gets its history, and waits for its earlier runs; the id of a run continues that one, last the newest of the directory")
	f.StringVar(&q.Owner, "owner", "", "as an operator: the owner of the conversation, who then owns the run and may read it")
	r.addScheduleFlags(f)
	r.addGoalFlags(f)
	f.StringVar(&r.policyFile, "policy", "", "file with the stop-veto policy, YAML or JSON: rules that may send an answer back, or end an agent")
	f.StringVar(&q.Fork, "fork", "", "start with the history of another run: RUN for all of it, RUN@TURN up to that turn; RUN@AGENT:POINT forks the whole tree (docs/fork.md)")
	f.StringVar(&q.Instead, "instead", "", "with --fork RUN@AGENT:POINT: the text that takes the place of the result of the call, or of the answer to the question, that POINT names; 'error: TEXT' makes the call fail")
	f.StringArrayVar(&r.layers, "layer", nil, "with --fork RUN@AGENT:POINT: a part of the agent's system prompt from there on, NAME=TEXT or NAME=@FILE; system replaces its prompt")
	f.StringVar(&r.history, "history", "", "start with the history in this file, as written by troupe export")
	f.StringVar(&q.RunID, "run-id", "", "id of the run, or of the schedule: a lower-case ULID; repeating the command with it returns the same run")
}

// Complete makes the request that the flags and arguments ask for. The prompt, or a part of it, may come from stdin.
func (r *Flags) Complete(a *console.Console, origins *Origins, c *cobra.Command, args []string) error {
	if err := r.completeHistory(); err != nil {
		return err
	}
	layers, err := ParseLayers(r.layers)
	if err != nil {
		return err
	}
	r.Request.Layers = layers
	switch {
	case len(layers) > 0 && !r.forksTree():
		return exit.UsageError("set it while the run works: troupe context RUN --layer NAME=TEXT", "--layer is only valid with a fork of a tree")
	case r.forksTree():
		return r.completeTreeFork(a, origins, c, args)
	case r.Request.Instead != "":
		return exit.UsageError("name the point with --fork RUN@AGENT:CALL", "--instead is only valid with a fork of a tree")
	}
	if r.Resume != "" {
		if len(args) > 0 {
			return exit.UsageError("troupe steer "+r.Resume+" TEXT sends a message to a run", "a run that is resumed has its prompt already")
		}
		r.Request.RunID, r.Request.Resume = strings.ToLower(r.Resume), true
		if !c.Flags().Changed("timeout") { // the setting is for new runs
			r.timeout = 0
		}
		noteIgnored(a, c)
	} else if err := r.readPrompt(a, args); err != nil {
		return err
	}
	return r.completeFlags(a, origins, c)
}

// CompleteMessage makes the request for one message of a chat. It does not read stdin: the next
// messages come from there.
func (r *Flags) CompleteMessage(a *console.Console, origins *Origins, c *cobra.Command, text string) error {
	text, err := r.expandCommand(a, text)
	if err != nil {
		return err
	}
	r.Request.Prompt = text
	return r.completeFlags(a, origins, c)
}

// completeFlags makes the request that the flags ask for.
func (r *Flags) completeFlags(a *console.Console, origins *Origins, c *cobra.Command) error {
	q := &r.Request
	if err := r.CheckConversation(c); err != nil {
		return err
	}
	if err := r.completeSchedule(a.Getenv); err != nil {
		return err
	}
	if q.RunID == "" {
		q.RunID = client.NewID()
	}
	if err := names.CheckToken(q.RunID); err != nil {
		return exit.UsageError("use a lower-case ULID, or leave --run-id out", "--run-id %q: it must be made of a-z, 0-9, - and _", q.RunID)
	}
	for _, p := range []*string{&q.Dir, &q.Agents} {
		if err := AbsoluteDir(p); err != nil {
			return err
		}
	}
	if err := r.checkAgentFiles(); err != nil {
		return err
	}
	if err := r.completeServerFile(); err != nil {
		return err
	}
	var err error
	if q.Model, err = absoluteModel(q.Model); err != nil {
		return err
	}
	if err := r.completeGoal(origins); err != nil {
		return err
	}
	if err := r.completePolicy(c); err != nil {
		return err
	}
	if err := r.checkClaudeSettings(); err != nil {
		return err
	}
	if r.attachments, err = readAttachments(r.attachPaths); err != nil {
		return err
	}
	if c.Flags().Changed("temperature") {
		if !(r.temperature >= 0 && r.temperature <= temperatureMax) {
			return exit.UsageError("leave it out for the provider's default", "--temperature is %g: it must be between 0 and %d", r.temperature, temperatureMax)
		}
		q.Temperature = &r.temperature
	}
	if q.Effort != "" && q.Effort != "low" && q.Effort != "medium" && q.Effort != "high" {
		return exit.UsageError("use low, medium or high", "--effort %q is invalid", q.Effort)
	}
	if _, err := throttle.ParsePriority(q.Priority); err != nil {
		return exit.UsageError("use high, normal or low", "--priority %q is invalid", q.Priority)
	}
	q.PatienceMS = r.patience.Milliseconds()
	if _, err := agentfile.ParseMode(q.PermissionMode); err != nil {
		return exit.UsageError("see docs/permissions.md", "--permission-mode: %v", err)
	}
	if q.Approvals < 0 || q.Approvals > permission.ApprovalsMax {
		return exit.UsageError("see docs/permissions.md", "--approvals %d is invalid: write 1 or 2", q.Approvals)
	}
	if _, err := permission.ParseTaint(q.Taint); err != nil {
		return exit.UsageError(taintHint, "--taint: %v", err)
	}
	q.QuestionTimeout, q.ParkTimeout, q.BacklogLease = r.questionTimeout.Milliseconds(), r.parkTimeout.Milliseconds(), r.backlogLease.Milliseconds()
	q.TimeoutMS, q.PaidLimit = r.timeout.Milliseconds(), origins.TokensByDirectory
	q.Caller, q.Trace = "cli", a.Getenv("TRACEPARENT")
	return cmp.Or(checkDryRun(r), r.checkNotNegative())
}

// checkDryRun refuses what cannot be previewed without storing something first.
func checkDryRun(r *Flags) error {
	q := &r.Request
	if q.DryRun && (q.Fork != "" || q.Resume || r.imported != nil || len(r.attachments) > 0 || r.IsScheduled()) {
		return exit.UsageError("leave it out: a dry run shows what a new run begins with", "--dry-run is not possible with --fork, --resume, --history, --attach and times")
	}
	return nil
}

const (
	scriptPrefix = "script/"
	taintHint    = "see docs/taint.md"
)

const temperatureMax = 2 // the highest that any provider takes

func (r *Flags) checkNotNegative() error {
	q := r.Request
	if err := r.checkAgentLimits(); err != nil {
		return err
	}
	for name, v := range map[string]int64{"max-turns": int64(q.MaxTurns), "max-tokens": q.MaxTokens, "max-tool-calls": q.MaxToolCalls,
		"max-depth": int64(q.MaxDepth), "max-children": int64(q.MaxChildren), "max-agents": int64(q.MaxAgents), "max-messages": int64(q.MaxMessages), "max-backlog": int64(q.MaxBacklog), "backlog-lease": q.BacklogLease,
		"timeout": q.TimeoutMS, "question-timeout": q.QuestionTimeout, "park-timeout": q.ParkTimeout, "log-patience": int64(r.LogPatience), "max-live-runs": int64(r.MaxLiveRuns), "use-tokens": q.UseTokens} {
		if v < 0 {
			return exit.UsageError("leave it out for the default", "--%s must not be negative", name)
		}
	}
	if q.MaxBudgetUSD < 0 {
		return exit.UsageError("leave it out for the default", "--max-budget-usd must not be negative")
	}
	return nil
}

// AbsoluteDir makes a path absolute: the node may have another directory.
func AbsoluteDir(p *string) error {
	if *p == "" {
		return nil
	}
	abs, err := filepath.Abs(*p)
	if err != nil {
		return fmt.Errorf("directory %s: %w", *p, err)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return exit.UsageError("name an existing directory", "there is no directory %s", abs)
	case err != nil:
		return exit.UsageError("name a directory that can be read", "%s", err)
	case !info.IsDir():
		return exit.UsageError("name a directory", "%s is a file", abs)
	}
	*p = abs
	return nil
}

// checkAgentFiles reports all problems of the file of the requested agent: a node reports only the file. The run leaves
// out other broken files.
func (r *Flags) checkAgentFiles() error {
	if r.Request.Agents == "" {
		return nil
	}
	_, _, err := agentfile.Load(r.Request.Agents)
	if err = agentfile.ErrorsFor(err, r.Request.Agent); err != nil {
		return exit.UsageError("`troupe agents validate "+r.Request.Agents+"` shows all that is wrong", "%s", agentfile.Sentences(err))
	}
	return nil
}

// Roots are the directories that a node in this process lets clients name.
func (r *Flags) Roots() []string {
	var roots []string
	for _, dir := range []string{r.Request.Dir, r.Request.Agents, r.Request.MCPConfig} {
		if dir != "" {
			roots = append(roots, dir)
		}
	}
	return roots
}
