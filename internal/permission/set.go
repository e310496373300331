package permission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission/rule"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// Decision is what permissions say about a call.
type Decision int

// Decisions, the strictest last.
const (
	Allow         Decision = iota
	AllowConfined          // the call runs where a sandbox confines it; elsewhere a person is asked
	Ask
	Deny
)

// Verdict is a decision, and what it comes from.
type Verdict struct {
	Decision Decision
	Why      string              // for people and models; "" if the call is allowed by the tool's default
	By       string              // who decided: ByRule and so on
	Rule     spec.PermissionRule // that decided; zero: none did
	// MayWriteAny: a rule, a mode or --yes allows the call to write any file of the directory, also one that
	// troupe did not make.
	MayWriteAny bool
	// OnlyConfined: where no sandbox confines the call, it is denied.
	OnlyConfined bool
	// Tainted: the call sends data out, and the agent has read text from outside.
	Tainted bool
}

// Authors of verdicts, as events name them.
const (
	ByRule    = "a rule"
	ByMode    = "the permission mode"
	ByYes     = "--yes"
	ByGrants  = "the tools that the agent may use"
	ByDefault = "the default of the tool"
	ByNobody  = "permissions that cannot be read"
)

// Tool is what the rules need to know of a tool.
type Tool struct {
	Class   model.Class
	Command bool // a command that the user's own agent file defines, or a function of the program
	Data    Data
	// TaintReason is why the agent counts as tainted; empty: it does not, or no tool of the run reads private data.
	TaintReason string
}

// Set is the compiled permissions of an agent: its own and those of its ancestors. The strictest of them counts. The
// zero Set denies everything.
type Set struct {
	list      []agentRules
	broken    string // why the permissions cannot be read
	writable  []string
	workspace string
}

// agentRules are the permissions of one agent, compiled: allow[i] comes from Allow[i], and so on.
type agentRules struct {
	spec.Permissions
	allow, ask, deny []Rule
	grants           [][]Rule // a call of a tool that a list names must fit a rule of that list
	asksNobody       bool     // what would be asked about is denied
}

// Compile compiles the permissions of an agent and those of its ancestors. If any of them cannot be read, the Set
// denies every call. writable are the paths that need no question.
func Compile(list []spec.Permissions, workspace string, writable []string) *Set {
	s := &Set{workspace: workspace, writable: writable}
	for _, p := range list {
		c := agentRules{Permissions: p}
		if !p.Narrows {
			c.Mode = narrowedMode(p.Mode, list)
		}
		c.asksNobody = p.Mode == spec.ModeDontAsk || slices.ContainsFunc(list, func(n spec.Permissions) bool { return n.Narrows && n.Mode == spec.ModeDontAsk }) //mutant:narrowed-mode-ignored
		if _, err := ParseTaint(p.Taint); err != nil {
			s.broken = "taint: " + err.Error()
		}
		if !slices.Contains(spec.PermissionModes, p.Mode) && p.Mode != "" {
			s.broken = "there is no permission mode " + string(p.Mode)
		}
		c.allow, c.ask, c.deny = s.parse(p.Allow, ParseAllow), s.parse(p.Ask, ParseGuard), s.parse(p.Deny, ParseGuard)
		for _, rules := range LimitingRules(p) {
			c.grants = append(c.grants, s.parse(rules, ParseAllow))
		}
		s.list = append(s.list, c)
	}
	return s
}

// narrowedMode applies the modes of narrowings to a mode. Mode plan of a narrowing decides by itself, so
// that mode dontAsk stays where it is.
func narrowedMode(mode spec.PermissionMode, list []spec.Permissions) spec.PermissionMode {
	for _, n := range list {
		if n.Narrows && n.Mode != "" && n.Mode != spec.ModePlan {
			mode = StricterMode(n.Mode, mode)
		}
	}
	return mode
}

// parse parses rules; with one that cannot be read the whole set denies.
func (s *Set) parse(rules []spec.PermissionRule, parse func(string) (Rule, error)) (list []Rule) {
	for _, r := range rules {
		parsed, err := parse(r.Text)
		if err != nil {
			s.broken = err.Error()
		}
		list = append(list, parsed)
	}
	return list
}

// Decide decides about a call. added are the rules that a person has added while the run works: they
// allow what no rule decides, and nothing else.
func (s *Set) Decide(c Call, t Tool, added []spec.PermissionRule) Verdict {
	switch {
	case s == nil || !slices.ContainsFunc(s.list, func(p agentRules) bool { return !p.Narrows }):
		return Verdict{Decision: Deny, By: ByNobody, Why: "there are no permissions"}
	case s.broken != "":
		return Verdict{Decision: Deny, By: ByNobody, Why: "the permissions cannot be read: " + s.broken}
	}
	c.Workspace = s.workspace
	added = s.addedByEnough(added)
	strictest, own := Verdict{Decision: -1}, Verdict{}
	for i, p := range s.list {
		v := p.decide(c, t, s.writable, added)
		if i == 0 {
			own = v
		}
		if v.Decision > strictest.Decision { //mutant:last-permissions-decide
			v.OnlyConfined, v.Tainted = v.OnlyConfined || strictest.OnlyConfined, v.Tainted || strictest.Tainted
			strictest = v
		} else if v.Decision == strictest.Decision {
			strictest.MayWriteAny, strictest.OnlyConfined = strictest.MayWriteAny && v.MayWriteAny, strictest.OnlyConfined || v.OnlyConfined
			strictest.Tainted = strictest.Tainted || v.Tainted
		}
	}
	if strictest.Decision == Ask && strictest.By == ByDefault && own.Decision == Allow && own.Rule.Text != "" {
		strictest.Why += " for the agents above this one, and " + name(own.Rule) + " allows it for this agent"
	}
	return strictest
}

// DeniesInsteadOfAsking reports whether one of the modes denies a call where another one would ask a person.
func (s *Set) DeniesInsteadOfAsking() bool {
	return s != nil && slices.ContainsFunc(s.list, func(p agentRules) bool { return p.Mode == spec.ModeDontAsk })
}

// decide applies one agent's permissions, in this order: rules that deny; limits of its tools; mode plan; rules that
// ask; irreversible tools; doubt whether a rule denies; the right to pass the shell on; mode bypassPermissions; rules
// that allow; rules that people added; the default of the tool. In mode dontAsk what would ask is denied. A narrowing
// allows what it neither denies nor asks about.
func (p agentRules) decide(c Call, t Tool, writable []string, added []spec.PermissionRule) Verdict {
	denying, doubt := -1, ""
	for i, r := range p.deny {
		switch r.denies(c) {
		case fits:
			if denying < 0 {
				denying = i
			}
		case fitsPerhaps:
			doubt = cmp.Or(doubt, whyInDoubt(c))
		}
	}
	if c.Tool == shellTool && !t.Command {
		doubt = cmp.Or(doubt, p.whyCommandsAsk())
	}
	only := p.unmetGrant(c)
	switch {
	case denying >= 0: //mutant:denied-by-no-rule
		return Verdict{Decision: Deny, By: ByRule, Rule: p.Deny[denying], Why: "the rule " + name(p.Deny[denying]) + " denies it"}
	case len(only) > 0:
		return Verdict{Decision: Deny, By: ByGrants, Why: "the agent may use " + c.Tool + " only for " + strings.Join(only, ", ")}
	case p.Mode == spec.ModePlan && changes(c, t): //mutant:plan-changes-something
		return Verdict{Decision: Deny, By: ByMode, Why: "permission mode plan: nothing that changes something runs"}
	}
	v := p.decideTainted(p.decideUndenied(c, t, doubt, writable, added), c, t, added)
	if v.Decision == Ask && p.asksNobody { //mutant:asks-although-nobody-may-be-asked
		v.Decision, v.By, v.Rule = Deny, ByMode, spec.PermissionRule{}
		v.Why += ", and nobody can be asked (permission mode dontAsk)"
	}
	return v
}

// whyInDoubt says why a call needs an approval when it is unclear whether a deny rule matches it.
func whyInDoubt(c Call) string {
	if c.Tool == shellTool {
		return "troupe cannot tell from the text whether a deny rule matches this command"
	}
	return "it may show what a rule denies"
}

// whyCommandsAsk says why every command is asked about: it could do with files what a rule forbids;
// "": no rule is about files.
func (p agentRules) whyCommandsAsk() string {
	sources := slices.Concat(p.Deny, p.Ask)
	for i, r := range slices.Concat(p.deny, p.ask) {
		if r.guardsFiles() {
			return "a shell command could reach files that rule " + name(sources[i]) + " protects"
		}
	}
	return ""
}

// unmetGrant returns the rules of the first limit that names the tool of a call and that the call fits none of; nil:
// there is none.
func (p agentRules) unmetGrant(c Call) (only []string) {
	for _, limit := range p.grants {
		about := slices.DeleteFunc(slices.Clone(limit), func(r Rule) bool { return r.tool != c.Tool })
		if len(about) == 0 || slices.ContainsFunc(about, func(r Rule) bool { return r.allows(c) }) {
			continue
		}
		for _, r := range about {
			only = append(only, r.text)
		}
		return only
	}
	return nil
}

// decideUndenied decides about a call that no rule denies; doubt says why one may.
func (p agentRules) decideUndenied(c Call, t Tool, doubt string, writable []string, added []spec.PermissionRule) Verdict {
	for i, r := range p.ask {
		if r.catches(c) != fitsNot || r.mayFind(c) {
			return Verdict{Decision: Ask, By: ByRule, Rule: p.Ask[i], Why: "rule " + name(p.Ask[i]) + " requires approval"}
		}
	}
	switch {
	case t.Class == model.Irreversible: //mutant:irreversible-call-asks-nobody
		return Verdict{Decision: Ask, By: ByDefault, Why: "the tool is marked irreversible"}
	case doubt != "":
		return Verdict{Decision: Ask, By: ByRule, Why: doubt}
	case p.ShellForChildren && c.Tool == shellTool, p.Narrows:
		return Verdict{Decision: Allow, MayWriteAny: true}
	case p.Mode == spec.ModeBypass && !(p.Confined && c.Tool == shellTool):
		return Verdict{Decision: Allow, By: ByMode, MayWriteAny: true, Why: "permission mode bypassPermissions"}
	}
	if v, ok := p.decideByAllow(c, added); ok {
		return v
	}
	return p.decideByDefault(c, t, writable)
}

// decideByAllow applies the rules that allow, and those that a person has added.
func (p agentRules) decideByAllow(c Call, added []spec.PermissionRule) (Verdict, bool) {
	var plain []Rule // those that count for commands without a sandbox
	var sources []spec.PermissionRule
	for i, r := range p.allow {
		if !p.Allow[i].Confined || c.Tool != shellTool {
			plain, sources = append(plain, r), append(sources, p.Allow[i])
		}
	}
	for _, source := range added {
		if r, err := ParseAllow(source.Text); err == nil { // it was parsed when it was added
			plain, sources = append(plain, r), append(sources, source)
		}
	}
	for i, r := range plain {
		if r.allows(c) {
			return Verdict{Decision: Allow, By: ByRule, MayWriteAny: true, Rule: sources[i], Why: "the rule " + name(sources[i]) + " allows it"}, true
		}
	}
	if c.Tool != shellTool {
		return Verdict{}, false
	}
	switch {
	case allowsCommand(plain, c):
		return Verdict{Decision: Allow, By: ByRule, Rule: ruleForCommand(plain, sources, c), Why: "rules allow each of its commands"}, true
	case allowsCommand(slices.Concat(plain, p.allow), c):
		return Verdict{Decision: AllowConfined, By: ByRule, Rule: ruleForCommand(p.allow, p.Allow, c), Why: "--allowed-tools allows commands only inside a full sandbox"}, true
	}
	return Verdict{}, false
}

// ruleForCommand returns the rule that allows a command alone; the zero rule if several do so together.
func ruleForCommand(list []Rule, sources []spec.PermissionRule, c Call) spec.PermissionRule {
	for i, r := range list {
		if allowsCommand([]Rule{r}, c) {
			return sources[i]
		}
	}
	return spec.PermissionRule{}
}

// fileCommands are the commands that acceptEdits allows: they change files of the directory, as a write does.
var fileCommands = []string{"shell(mkdir:*)", "shell(touch:*)", "shell(mv:*)", "shell(cp:*)"}

func parseAll(texts []string) (list []Rule) {
	for _, text := range texts {
		if r, err := Parse(text); err == nil {
			list = append(list, r)
		}
	}
	return list
}

// decideByDefault decides about a call that no rule matches.
func (p agentRules) decideByDefault(c Call, t Tool, writable []string) Verdict {
	if t.Command {
		return Verdict{Decision: Allow}
	}
	switch {
	case c.Tool == shellTool:
		switch {
		case p.Mode == spec.ModeBypass:
			return Verdict{Decision: AllowConfined, By: ByMode, Why: "permission mode bypassPermissions of a request allows commands only inside a full sandbox"}
		case p.Yes:
			return Verdict{Decision: AllowConfined, By: ByYes, Why: "--yes allows commands only inside a full sandbox"}
		case p.Mode == spec.ModeAcceptEdits && allowsCommand(parseAll(fileCommands), c):
			return Verdict{Decision: AllowConfined, By: ByMode, Why: "permission mode acceptEdits allows commands only inside a full sandbox"}
		}
		return Verdict{Decision: Ask, By: ByDefault, Why: p.notAllowedText(c)}
	case slices.Contains(WriteTools, c.Tool):
		if local, ok := localPath(c.Workspace, factsOf(c).Path); !ok || matchesAny(writable, local) {
			return Verdict{Decision: Allow} // outside of the directory the tool refuses it
		}
		switch {
		case p.Yes:
			return Verdict{Decision: Allow, By: ByYes, MayWriteAny: true, Why: "--yes allows writes in the directory"}
		case p.Mode == spec.ModeAcceptEdits:
			return Verdict{Decision: Allow, By: ByMode, MayWriteAny: true, Why: "permission mode acceptEdits allows writes in the directory"}
		}
		return Verdict{Decision: Ask, By: ByDefault, Why: "no rule allows writing this file"}
	case callsForeign(c):
		if p.Yes {
			return Verdict{Decision: Allow, By: ByYes, Why: "--yes allows agents of other programs"}
		}
		return Verdict{Decision: Ask, By: ByDefault, Why: "no rule allows " + factsOf(c).Agent}
	case strings.HasPrefix(c.Tool, toolname.MCPPrefix) && t.Class != model.Read:
		if p.Yes {
			return Verdict{Decision: Allow, By: ByYes, Why: "--yes allows tools of MCP servers"}
		}
		return Verdict{Decision: Ask, By: ByDefault, Why: "no rule allows " + c.Tool}
	}
	return Verdict{Decision: Allow}
}

// notAllowedText says why no rule allows a command.
func (p agentRules) notAllowedText(c Call) string {
	var patterns []string
	for _, r := range p.allow {
		if r.isAbout(shellTool) && r.pattern != "" {
			patterns = append(patterns, r.pattern)
		}
	}
	if word := rule.Uncovered(patterns, factsOf(c).Command); word != "" {
		return fmt.Sprintf("a rule allows this command, but not with the argument %.80q, which may write a file or run a program", word)
	}
	return "no rule allows this command"
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, err := doublestar.Match(p, name); return ok && err == nil })
}

// loopTools change nothing outside of the run.
var loopTools = []string{"delegate", "handoff", "send_message", "ask_human", "declare_failure", "get_run_journal", "update_run_journal", "append_run_journal_entry", "read_result",
	"backlog_list", "backlog_post", "backlog_claim", "backlog_done", "backlog_return"}

// changes reports whether a call may change something outside of the run.
func changes(c Call, t Tool) bool {
	return callsForeign(c) || t.Class != model.Read && !slices.Contains(loopTools, c.Tool)
}

// name shows a rule with its place.
func name(r spec.PermissionRule) string {
	if r.From == "" {
		return r.Text
	}
	return r.Text + " (" + r.From + ")"
}
