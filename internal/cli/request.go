package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model"
)

// promptMax bounds the bytes that are read as a prompt: more than a node accepts,
// so that the node reports a prompt that is too long.
const promptMax = 256 << 10

// runFlags are the flags of run and start.
type runFlags struct {
	request     client.RunRequest
	goal        goalFlags
	timeout     time.Duration
	patience    time.Duration // with a log that cannot be written
	temperature float64
	resume      string
	history     string
	recalled    *history.Transcript // of the file history
	detach      bool
	maxLive     int // runs of a node in this process
	attach      []string
	attached    []attached // the files attach
}

func (r *runFlags) add(f *pflag.FlagSet) {
	q := &r.request
	f.StringVar(&q.Agent, "agent", "", "agent that gets the task (default coordinator)")
	f.StringVar(&q.Agents, "agents", "", "directory of agent files")
	f.StringVar(&q.Dir, "dir", "", "directory that the agents work in (default none)")
	f.StringVar(&q.MCPConfig, "mcp-config", "", "file of MCP servers that goes before the others")
	f.StringVarP(&q.Model, "model", "m", "", "model, PROVIDER/MODEL (default: by the keys in the environment)")
	f.IntVar(&q.MaxTurns, "max-turns", 0, "most turns of the first agent (default 20)")
	f.Int64Var(&q.MaxTokens, "max-tokens", 0, "most tokens of the whole tree (default 60,000 for builtin/scout, else 1,000,000)")
	f.Float64Var(&q.MaxBudgetUSD, "max-budget-usd", 0, "most US dollars of the whole tree (default 1 with a paid key)")
	f.StringArrayVar(&r.attach, "attach", nil, fmt.Sprintf("image, PDF or text file that comes with the prompt, at most %d of %d bytes each; may be repeated", model.MediaMax, model.MediaBytesMax))
	f.StringSliceVar(&q.AllowUnbounded, "allow-unbounded", nil, "models that may be sent attachments whose greatest cost nobody has published, PROVIDER/MODEL")
	f.StringSliceVar(&q.AllowUnpriced, "allow-unpriced", nil, "models that may be called under --max-budget-usd though their price is unknown, PROVIDER/MODEL")
	f.Int64Var(&q.MaxToolCalls, "max-tool-calls", 0, "most tool calls of the whole tree (default 200)")
	f.IntVar(&q.MaxDepth, "max-depth", 0, "how deep agents may delegate (default 3)")
	f.IntVar(&q.MaxMessages, "max-messages", 0, "most messages between the agents of the run (default 128)")
	f.IntVar(&q.MaxChildren, "max-children", 0, "most live children of one agent (default 8)")
	f.IntVar(&q.MaxAgents, "max-agents", 0, "most agents of the whole tree (default 128)")
	f.DurationVar(&r.timeout, "timeout", 0, "time at work after which an agent sums up (default 15m); with --resume from now on")
	f.Float64Var(&r.temperature, "temperature", 0, "temperature of the model (default the provider's)")
	f.StringVar(&q.Effort, "effort", "", "reasoning effort: low, medium, high")
	f.StringSliceVar(&q.AllowedTools, "allowed-tools", nil, "only these tools, separated by commas")
	f.StringSliceVar(&q.DisallowedTools, "disallowed-tools", nil, "not these tools, separated by commas; 'shell(rm:*)': the shell, but not such commands")
	f.BoolVar(&q.NoAgentsMD, "no-agents-md", false, "leave the directory's AGENTS.md out of the prompts")
	f.BoolVar(&q.Yes, "yes", false, "let agents write in the directory and run commands in the sandbox without asking")
	f.StringVar(&q.Conversation, "conversation", "", "conversation that the run belongs to")
	r.addGoal(f)
	f.StringVar(&q.Fork, "fork", "", "begin with the history of a run: RUN as it stands, or RUN@TURN after a turn")
	f.StringVar(&r.history, "history", "", "begin with the history in this file, which troupe export has written")
	f.StringVar(&q.RunID, "run-id", "", "id of the run, a lower-case ULID; asking again with it finds the same run")
}

// complete makes the request that the flags and arguments ask for.
func (r *runFlags) complete(a *console, origins *settingOrigins, c *cobra.Command, args []string) error {
	q := &r.request
	if err := r.past(); err != nil {
		return err
	}
	if r.resume != "" {
		if len(args) > 0 {
			return usage("troupe steer "+r.resume+" TEXT says something to a run", "a run that is resumed has its prompt already")
		}
		q.RunID, q.Resume = strings.ToLower(r.resume), true
		if !c.Flags().Changed("timeout") { // the setting is for new runs
			r.timeout = 0
		}
	} else if err := r.ask(a, args); err != nil {
		return err
	}
	if q.RunID == "" {
		q.RunID = client.NewID()
	}
	if err := names.Token(q.RunID); err != nil {
		return usage("use a lower-case ULID, or leave --run-id out", "--run-id %q: it must be made of a-z, 0-9, - and _", q.RunID)
	}
	for _, p := range []*string{&q.Dir, &q.Agents} {
		if err := directory(p); err != nil {
			return err
		}
	}
	if err := r.completeAgents(); err != nil {
		return err
	}
	if err := r.completeServers(); err != nil {
		return err
	}
	var err error
	if q.Model, err = absolute(q.Model); err != nil {
		return err
	}
	if err := r.completeGoal(origins); err != nil {
		return err
	}
	if r.attached, err = attachments(r.attach); err != nil {
		return err
	}
	if c.Flags().Changed("temperature") {
		q.Temperature = &r.temperature
	}
	if q.Effort != "" && q.Effort != "low" && q.Effort != "medium" && q.Effort != "high" {
		return usage("use low, medium or high", "--effort %q", q.Effort)
	}
	q.TimeoutMS, q.PaidLimit = r.timeout.Milliseconds(), origins.tokensByDirectory
	q.Caller, q.Trace = "cli", a.getenv("TRACEPARENT")
	return r.positive()
}

const scriptPrefix = "script/"

func (r *runFlags) positive() error {
	q := r.request
	for name, v := range map[string]int64{"max-turns": int64(q.MaxTurns), "max-tokens": q.MaxTokens, "max-tool-calls": q.MaxToolCalls,
		"max-depth": int64(q.MaxDepth), "max-children": int64(q.MaxChildren), "max-agents": int64(q.MaxAgents), "max-messages": int64(q.MaxMessages),
		"timeout": q.TimeoutMS, "journal-patience": int64(r.patience), "max-live-runs": int64(r.maxLive), "use-tokens": q.UseTokens} {
		if v < 0 {
			return usage("leave it out for the default", "--%s must not be negative", name)
		}
	}
	if q.MaxBudgetUSD < 0 {
		return usage("leave it out for the default", "--max-budget-usd must not be negative")
	}
	return nil
}

// ask finds the prompt: the argument, or stdin.
func (r *runFlags) ask(a *console, args []string) error {
	switch {
	case len(args) > 1:
		return usage("put the prompt in quotes", "one prompt is expected, not %d arguments", len(args))
	case len(args) == 1 && args[0] != "-":
		r.request.Prompt = args[0]
	case len(args) == 0 && term.IsTTY(a.in):
		return usage(`troupe run "what to do"; or - to read it from stdin`, "there is no prompt")
	default:
		data, err := io.ReadAll(io.LimitReader(a.in, promptMax+1))
		if err != nil {
			return fmt.Errorf("read the prompt: %w", err)
		}
		if len(data) > promptMax {
			return usage("put long material into a file of the directory", "the prompt has more than %d bytes", promptMax)
		}
		r.request.Prompt = strings.TrimSpace(string(data))
	}
	if strings.TrimSpace(r.request.Prompt) == "" {
		return usage(`troupe run "what to do"`, "the prompt is empty")
	}
	return nil
}

// directory makes a path absolute: the node may have another directory.
func directory(p *string) error {
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
		return usage("name a directory that is there", "there is no directory %s", abs)
	case err != nil:
		return usage("name a directory that can be read", "%s", err)
	case !info.IsDir():
		return usage("name a directory", "%s is a file", abs)
	}
	*p = abs
	return nil
}

// completeAgents reports all problems of the files of --agents: a node reports only
// the files.
func (r *runFlags) completeAgents() error {
	if r.request.Agents == "" {
		return nil
	}
	if _, _, err := agentfile.Load(r.request.Agents); err != nil {
		return usage("`troupe agents validate` shows all that is wrong", "%v", err)
	}
	return nil
}

// roots are the directories that a node in this process lets clients name.
func (r *runFlags) roots() []string {
	var roots []string
	for _, dir := range []string{r.request.Dir, r.request.Agents, r.request.MCPConfig} {
		if dir != "" {
			roots = append(roots, dir)
		}
	}
	return roots
}
