package runspec

import (
	"cmp"
	"errors"
	"reflect"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/guardrail"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/policy"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// Sources of the rules that a request brings (see requestPermissions).
const (
	fromAllowed    = "--allowed-tools"
	fromAsk        = "--ask-tools"
	fromDisallowed = "--disallowed-tools"
)

// CheckRestored refuses a run from a file that has a right which a new run would not get from this node. It builds a
// new run like the recorded one: the agent files and MCP servers that it may use are those that named names, since a
// file must not choose the files that this node reads. Then it compares what gives rights. The rest of the record
// counts as it is, as after a takeover by another node: an agent asks a person about differences (drift.go).
func CheckRestored(b *Builder, o supervisor.Opened, named client.RunRequest) error {
	if o.Permissions == nil {
		return refuse.Bad("finish it where it is",
			"the run %s was begun by a release that recorded no permissions: it cannot be restored", o.Run)
	}
	if _, err := policy.Compile(o.Policy); err != nil {
		return refuse.Bad(policyPageHint, "the policy of the run: %v", err)
	}
	if err := errors.Join(checkRecordedLimits(o), checkLimits(named)); err != nil { // a fork names limits of its own
		return err
	}
	if named.Dir != "" && o.Workspace == "" {
		return refuse.Bad("leave --dir out", "the run %s has no directory", o.Run)
	}
	cfg := b.cfg
	// the request that names the files is another than the one like the recorded run
	cfg.Trust = cfg.Trust.ForRequest(named)
	b = New(cfg)
	fresh, _, err := b.buildWhole(requestLike(o, named))
	if err != nil {
		return explainRefused(o, named, err)
	}
	return compareRights(b, o, fresh)
}

// PlaceRestored returns where a run from a file goes on, if it does so in the directory that a request names: the
// directory without links, and the node pool of a new run with that directory.
func PlaceRestored(b *Builder, named client.RunRequest) (dir, pool string, err error) {
	if dir, _, err = b.cfg.Trust.CheckNamed(named, "dir", named.Dir, b.cfg.Trust.Roots); err != nil {
		return "", "", err
	}
	return dir, b.cfg.poolOf(dir), nil
}

// checkRecordedLimits refuses limits that no request may have.
func checkRecordedLimits(o supervisor.Opened) error {
	l := o.Limits
	return checkLimits(client.RunRequest{MaxTurns: o.RootTurns, MaxTokens: l.Tokens, MaxBudgetUSD: float64(l.Nano) / budget.NanoPerUSD, MaxToolCalls: l.Calls,
		MaxDepth: l.Depth, MaxChildren: l.Children, MaxAgents: l.Agents, MaxMessages: l.Messages,
		MaxBacklog: l.Backlog, BacklogLease: l.LeaseMS})
}

// explainRefused explains why a run like the recorded one cannot be opened here.
func explainRefused(o supervisor.Opened, named client.RunRequest, err error) error {
	known := (*client.Error)(nil)
	if !errors.As(err, &known) { // also nil
		return err
	}
	hint := known.Hint
	if named.Agents == "" && slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Source != "" }) {
		hint = "name the directory of its agent files with --agents; " + hint
	}
	if _, isScript := trust.ScriptPath(o.Model.Name); isScript && named.Model == "" {
		hint = "name the script with -m script/FILE; " + hint
	}
	if o.Workspace != "" && named.Fork == "" { // a fork has a copy
		hint += "; the run works in " + o.Workspace + ": name it with --dir, or a copy of it, or restore it on a node that has it as a root"
	}
	return &client.Error{Code: known.Code, Text: "a new run like " + o.Run + " would be refused here: " + known.Text, Hint: hint}
}

// requestLike returns a request for a run with the rights of the recorded one.
func requestLike(o supervisor.Opened, named client.RunRequest) client.RunRequest {
	p := o.Permissions
	r := client.RunRequest{RunID: o.Run, Prompt: cmp.Or(o.Goal, "-"), Agent: o.Root, Priority: o.Priority, Agents: named.Agents, MCPConfig: named.MCPConfig, Dir: o.Workspace,
		Model: o.Model.Name, MaxTokens: o.Limits.Tokens, PermissionMode: string(p.Mode), Approvals: p.Approvals, Taint: p.Taint, TaintFiles: p.TaintFiles, Outside: o.Tainted != nil, Yes: p.Yes, AllowUnpriced: o.Unpriced,
		AskTools: rulesFrom(p.Ask, fromAsk), DisallowedTools: rulesFrom(p.Deny, fromDisallowed),
		AllowedTools: rulesFrom(slices.Concat(p.Allow, p.Only), fromAllowed),
		LoopOptions:  &spec.LoopOptions{AskPeople: o.LoopOptions.AskPeople, Unattended: o.LoopOptions.Unattended, Journal: o.LoopOptions.Journal}}
	if named.Fork != "" { // it goes on with the model that it names
		r.Model = cmp.Or(named.Model, r.Model)
	}
	for _, f := range o.LoopOptions.Fallbacks {
		r.Fallback = append(r.Fallback, f.Name)
	}
	isNamed := func(t model.ToolSpec) bool {
		return slices.Contains(toolset.NamedOnly, t.Name) || slices.Contains(toolset.ToolNames(agent.BacklogTools()), t.Name)
	}
	if len(r.AllowedTools) > 0 || slices.ContainsFunc(o.Tools, isNamed) {
		for _, t := range o.Tools {
			r.AllowedTools = append(r.AllowedTools, t.Name)
		}
	}
	return r
}

// rulesFrom returns the texts of the rules of one source.
func rulesFrom(rules []spec.PermissionRule, source string) (texts []string) {
	for _, r := range rules {
		if r.From == source {
			texts = append(texts, r.Text)
		}
	}
	return texts
}

const rightsHint = "restore it on a node with the configuration of the first one; --agents and --mcp-config name the files that it may use"

// compareRights refuses what gives the recorded run more than the fresh one has.
func compareRights(b *Builder, o, fresh supervisor.Opened) error {
	refused := func(format string, args ...any) error {
		return refuse.Forbidden(rightsHint, "the run "+o.Run+" cannot be restored here: "+format, args...)
	}
	if !sameHooks(o.LoopOptions.Hooks, fresh.LoopOptions.Hooks) {
		return refused("its hooks are not those of this node")
	}
	for _, c := range o.Commands {
		if !slices.Contains(fresh.Commands, c) {
			return refused("its tool %.80q runs the command %.200q, which no agent file defines here", c.Name, c.Line)
		}
	}
	for _, s := range o.Servers {
		if !slices.Contains(fresh.Servers, s) {
			return refused("its MCP server %.80q is another one here, or is missing", s.Name)
		}
	}
	for _, t := range o.Tools {
		if i := toolset.IndexTool(fresh.Tools, t.Name); i >= 0 && fresh.Tools[i].Class != t.Class {
			return refused("its tool %.80q is declared as %s, here it is %s", t.Name, t.Class, fresh.Tools[i].Class)
		} else if i >= 0 && fresh.Tools[i].Data != t.Data {
			return refused("what its tool %.80q does with data is stated as %q, here as %q", t.Name, t.Data, fresh.Tools[i].Data)
		}
	}
	for _, path := range o.Writable {
		if !slices.Contains(fresh.Writable, path) {
			return refused("its commands may write to %.200q, here they may not", path)
		}
	}
	if o.Workspace != fresh.Workspace {
		return refused("its directory %.200q is a link to %.200q, which may lead elsewhere later", o.Workspace, fresh.Workspace)
	}
	if err := b.checkScripts(client.RunRequest{Fallback: o.LoopOptions.Models()}); err != nil {
		return err
	}
	if o.NodePool != fresh.NodePool {
		return refused("its agents live in the node pool %q, here they would live in %q; --dir names the directory in which it goes on here", o.NodePool, fresh.NodePool)
	}
	for _, r := range o.Permissions.Deny { // one that takes a tool away would keep its class from the comparison
		if r.From == fromDisallowed && !hasRule(fresh.Permissions.Deny, r) {
			return refused("it has a rule %.80q of %s, and no request brings such a rule", r.Text, fromDisallowed)
		}
	}
	if what := looserPermissions(*o.Permissions, *fresh.Permissions); what != "" {
		return refused("its permissions have %s, which a new run would not have", what)
	}
	for _, d := range o.Definitions {
		if err := compareDefinition(b, d, fresh.Definitions, refused); err != nil {
			return err
		}
	}
	return nil
}

// compareDefinition compares an agent with the one of that name here. An agent that is not here has no hooks and no
// permissions of its own.
func compareDefinition(b *Builder, d supervisor.Definition, here []supervisor.Definition, refused func(string, ...any) error) error {
	var f supervisor.Definition
	if i := definitionIndex(here, d.Name); i >= 0 {
		f = here[i]
	}
	recorded, own := permission.Merge(spec.Permissions{}, d.Permissions), permission.Merge(spec.Permissions{}, f.Permissions)
	what := looserPermissions(recorded, own)
	switch {
	case !sameHooks(d.LoopOptions.Hooks, f.LoopOptions.Hooks):
		return refused("the hooks of its agent %.80q are not those that the agent has here", d.Name)
	case what != "":
		return refused("its agent %.80q has %s, which it does not have here", d.Name, what)
	case slices.ContainsFunc(d.Delegates, func(name string) bool { return agentfile.IsForeignAgent(name) && !slices.Contains(f.Delegates, name) }):
		return refused("its agent %.80q may call agents of other programs that its file here does not name", d.Name)
	case d.Foreign && !f.Foreign:
		return refused("its agent %.80q stands for an agent of another program, which no file here names", d.Name)
	case d.Foreign && d.ChargeNano < f.ChargeNano:
		return refused("less is charged for %.80q than here", d.Name)
	case d.Memory != f.Memory && d.Memory != "":
		return refused("its agent %.80q keeps the notes of the %.20s, here it does not", d.Name, d.Memory)
	case d.NodePool != f.NodePool && d.NodePool != "":
		return refused("its agent %.80q lives in the node pool %.80q, here it would not", d.Name, d.NodePool)
	}
	if d.Model != nil && (f.Model == nil || f.Model.Name != d.Model.Name) {
		if err := b.checkScripts(client.RunRequest{Model: d.Model.Name}); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(d.LoopOptions.Models(), f.LoopOptions.Models()) {
		return b.checkScripts(client.RunRequest{Fallback: d.LoopOptions.Models()})
	}
	return nil
}

// sameHooks reports whether recorded hooks are those that a new run would have. The recorded ones may have more ready
// guardrails: a request can bring these, and they only take rights away.
func sameHooks(recorded, fresh []spec.Hook) bool {
	recorded = slices.DeleteFunc(slices.Clone(recorded), func(h spec.Hook) bool {
		return guardrail.Makes(h) && !slices.Contains(fresh, h)
	})
	return slices.Equal(recorded, fresh)
}

// looserPermissions describes what permissions allow more than others; "": nothing.
func looserPermissions(p, than spec.Permissions) string {
	lists := [][2][]spec.PermissionRule{{than.Ask, p.Ask}, {than.Deny, p.Deny}, {p.Allow, than.Allow}}
	for i, l := range lists {
		for _, r := range l[0] {
			if hasRule(l[1], r) {
				continue
			}
			return [...]string{"no rule that asks about ", "no rule that denies ", "a rule that allows "}[i] + r.Text
		}
	}
	switch {
	case p.Mode != than.Mode:
		return "the mode " + string(cmp.Or(p.Mode, "default"))
	case than.Confined && !p.Confined:
		return "a mode that also holds outside of the sandbox"
	case p.Yes && !than.Yes:
		return "an approval of all writes in the directory"
	case max(p.Approvals, 1) < than.Approvals:
		return "calls that one person alone may approve"
	case loosensTaint(p.Taint, than.Taint), than.TaintFiles && !p.TaintFiles:
		return "calls that send data out although text from outside was read"
	case p.UserEnv && !than.UserEnv:
		return "the variables of the user's settings in its commands"
	case than.ShellForChildren && !p.ShellForChildren:
		return "a shell of its own"
	case !sameRules(p.Only, than.Only), !slices.EqualFunc(p.Within, than.Within, sameRules):
		return "other calls that it is kept to"
	}
	return ""
}

// hasRule reports whether a list has a rule, regardless of its source.
func hasRule(list []spec.PermissionRule, r spec.PermissionRule) bool {
	return slices.ContainsFunc(list, func(o spec.PermissionRule) bool {
		return o.Text == r.Text && o.Confined == r.Confined && o.AllowsTainted == r.AllowsTainted
	})
}

func sameRules(a, b []spec.PermissionRule) bool {
	isIn := func(list []spec.PermissionRule) func(spec.PermissionRule) bool {
		return func(r spec.PermissionRule) bool { return !hasRule(list, r) }
	}
	return !slices.ContainsFunc(a, isIn(b)) && !slices.ContainsFunc(b, isIn(a))
}

// loosensTaint reports whether a value of Permissions.Taint is looser than another. None is as loose as off.
func loosensTaint(mode, than string) bool {
	mode = cmp.Or(mode, spec.TaintOff)
	return permission.StricterTaint(mode, than) != mode
}
