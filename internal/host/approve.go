package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/hook"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/settings"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool/sandbox"
	"github.com/troupe-run/troupe/tool/shell"
)

// approvalHook is the hook that has a person asked before a command runs, and
// before anything that cannot be undone. It is data of the task, as all hooks
// are; a node that does not know it refuses the call.
const approvalHook = "approval"

// askedBytesMax is the most of a command that a person can be asked about: what
// is not shown cannot be agreed to.
const askedBytesMax = 1400

// leave is what needs no person, as far as a task says it.
type leave struct {
	Allow []string `json:"allow,omitempty"` // rules of shell: the operator's, and of trusted files
	// Request are rules of shell that the request brought: like Yes, they count only
	// where the sandbox confines commands, because nothing proves whose word they are.
	Request []string `json:"request,omitempty"`
	Deny    []string `json:"deny,omitempty"`  // commands of shell that never run
	Yes     bool     `json:"yes,omitempty"`   // any command that the sandbox confines
	Asked   []string `json:"asked,omitempty"` // tools that always need one
	// DenyOnly: the agent may only pass the shell on, so nothing but Deny binds.
	DenyOnly bool `json:"deny_only,omitempty"`
}

// ruled is the hook of a definition that names the shell with rules.
func ruled(d agentfile.Definition) []agent.Hook {
	l := leave{Allow: allowedCommands(d.Tools)}
	l.Deny, _ = agentfile.DeniedCommands(d.DisallowedTools)
	if l.Allow == nil && l.Deny == nil {
		return nil
	}
	return []agent.Hook{l.hook(shell.Name)}
}

// allowedCommands are the rules of shell among refs.
func allowedCommands(refs []agentfile.ToolRef) (rules []string) {
	for _, r := range refs {
		if r.Name == shell.Name && r.Args != "" {
			rules = append(rules, r.Args)
		}
	}
	return rules
}

func (l leave) hook(tools ...string) agent.Hook {
	for i, name := range tools {
		tools[i] = regexp.QuoteMeta(name)
	}
	rules, err := json.Marshal(l)
	if err != nil {
		rules = nil // texts always have a form; without one nothing is allowed
	}
	return agent.Hook{Name: approvalHook, Point: agent.HookPreTool, Tools: strings.Join(tools, "|"), Failing: agent.HookDeny, Rules: string(rules)}
}

// approvals puts the hook before the calls that need a person, once the classes
// of all tools are known: irreversible ones, and the shell.
func (h *Host) approvals(o *supervisor.Opened, r client.RunRequest) {
	var asked []string
	for _, s := range o.Tools {
		if s.Class == model.Irreversible {
			asked = append(asked, s.Name)
		}
	}
	tools := slices.Clone(asked)
	own := !slices.ContainsFunc(o.Commands, func(c agent.Command) bool { return c.Name == shell.Name })
	if specOf(o.Tools, shell.Name) >= 0 && own && !slices.Contains(tools, shell.Name) {
		tools = append(tools, shell.Name)
	}
	run := leave{Yes: r.Yes, Asked: asked, Allow: slices.Clone(h.rule(shell.Name).Allow), Request: allowedCommands(agentfile.Refs(r.AllowedTools))}
	denied, _ := agentfile.DeniedCommands(agentfile.Refs(r.DisallowedTools))
	run.Deny = slices.Concat(h.rule(shell.Name).Deny, deniedByDirectory(o.Workspace), denied)
	for i, d := range o.Definitions {
		mine := run
		hooks := slices.DeleteFunc(slices.Clone(d.Manners.Hooks), func(k agent.Hook) bool {
			if k.Name != approvalHook {
				return false
			}
			var said leave
			if json.Unmarshal([]byte(k.Rules), &said) == nil {
				mine.Allow, mine.Deny = slices.Concat(mine.Allow, said.Allow), slices.Concat(mine.Deny, said.Deny)
			}
			return true
		})
		// Hooks of a parent bind its children. An agent that may only pass the shell on
		// allows nothing itself, so it does not take away what the child's file allows.
		mine.DenyOnly = d.Offer != nil && !slices.Contains(d.Offer, shell.Name)
		has := func(name string) bool { return d.Tools == nil || slices.Contains(d.Tools, name) }
		if slices.ContainsFunc(tools, has) {
			hooks = append(hooks, mine.hook(slices.Clone(tools)...))
		}
		o.Definitions[i].Manners.Hooks = hooks
	}
}

// deniedByDirectory are the commands that the settings of the directory deny: they
// may come from anybody, and can only take trust away. classify has refused a file
// that cannot be read.
func deniedByDirectory(workspace string) []string {
	if workspace == "" {
		return nil
	}
	local, err := agentfile.ShareOf(workspace, settings.FileName)
	i := slices.IndexFunc(local.Tools, func(r agentfile.ToolRule) bool { return r.Name == shell.Name })
	if err != nil || i < 0 {
		return nil
	}
	return local.Tools[i].Deny
}

// goHooks are the functions of the operator, and ours.
func (h *Host) goHooks() map[string]hook.Func {
	all := maps.Clone(h.cfg.GoHooks)
	if all == nil {
		all = map[string]hook.Func{}
	}
	all[approvalHook] = func(ctx context.Context, c hook.Call) (agent.HookAnswer, error) { return approve(ctx, c, confined) }
	return all
}

// approve decides whether a call needs a person. It runs where the call would, and
// what a person reads names what this system does not enforce: where that is
// something else, somebody is asked anew (agent.Manners.Reask).
func approve(ctx context.Context, c hook.Call, confined func(context.Context) string) (agent.HookAnswer, error) {
	var l leave
	if err := json.Unmarshal([]byte(c.Hook.Rules), &l); err != nil {
		return agent.HookAnswer{}, fmt.Errorf("its rules cannot be read: %w", err)
	}
	ask := func(why string) (agent.HookAnswer, error) {
		if len(c.Data.Args) > askedBytesMax {
			return agent.HookAnswer{Decision: agent.HookDeny, Text: fmt.Sprintf("a person must agree to it, and it is too long to be shown: %d bytes, at most %d", len(c.Data.Args), askedBytesMax)}, nil
		}
		if c.Data.Tool == shell.Name {
			if missing := confined(ctx); missing != "" {
				why += "; this system does not enforce: " + missing
			}
		}
		return agent.HookAnswer{Decision: agent.HookAsk, Text: why}, nil
	}
	var args struct {
		Command string `json:"command"`
	}
	found := shell.Clear
	if c.Data.Tool == shell.Name {
		if err := json.Unmarshal([]byte(c.Data.Args), &args); err != nil {
			return agent.HookAnswer{}, fmt.Errorf("the arguments cannot be read: %w", err)
		}
		found = shell.Find(l.Deny, args.Command)
	}
	switch {
	case found == shell.Denied:
		return agent.HookAnswer{Decision: agent.HookDeny, Text: "a rule denies a command of it; the rules deny: " + strings.Join(l.Deny, ", ")}, nil
	case slices.Contains(l.Asked, c.Data.Tool):
		return ask("what it does cannot be undone")
	case found == shell.Unclear:
		return ask("it is decided only when it runs whether a rule denies a command of it")
	case l.DenyOnly:
		return agent.HookAnswer{}, nil
	}
	if shell.Allowed(l.Allow, args.Command) {
		return agent.HookAnswer{}, nil
	}
	return approveWhereConfined(l, args.Command, func() bool { return confined(ctx) == "" }, ask)
}

// approveWhereConfined decides by what counts only where the sandbox confines a command.
func approveWhereConfined(l leave, command string, isConfined func() bool, ask func(string) (agent.HookAnswer, error)) (agent.HookAnswer, error) {
	ruled := shell.Allowed(slices.Concat(l.Allow, l.Request), command)
	switch {
	case !ruled && !l.Yes:
		return ask("no rule allows this command")
	case isConfined():
		return agent.HookAnswer{}, nil
	case l.Yes:
		return ask("--yes does not count for commands here")
	}
	return ask("rules of the request do not count for commands here")
}

var probed struct {
	sync.Mutex
	missing *string
}

// confined says what is missing for a command to be harmless outside of its
// directory; "" is nothing. It is looked at once in a process.
func confined(ctx context.Context) string {
	probed.Lock()
	defer probed.Unlock()
	if probed.missing != nil {
		return *probed.missing
	}
	report, err := sandbox.Probe(ctx)
	if err != nil {
		return err.Error()
	}
	var missing sandbox.Report
	for _, f := range report.Missing() {
		if f.What == sandbox.Files || f.What == sandbox.Git || f.What == sandbox.Network {
			missing = append(missing, f)
		}
	}
	text := missing.String()
	probed.missing = &text
	return text
}
