package permission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool/shell/rule"
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
	Why      string              // for people and models
	Rule     spec.PermissionRule // that decided; zero: the mode, or the default of the tool
	// Granted: a person, or a rule of a person, lets the call write files that the tool would otherwise keep.
	Granted bool
}

// Tool is what the rules need to know of a tool.
type Tool struct {
	Class   model.Class
	Command bool // a command that the user's own agent file defines, or a function of the program
}

// Set is the permissions of an agent, compiled: its own, and those of its ancestors, of which the
// strictest counts. The zero Set denies everything.
type Set struct {
	list     []compiled
	broken   string
	writable []string
	dir      string
}

type compiled struct {
	spec.Permissions
	allow, ask, deny []Rule
	limits           [][]Rule // a call of a tool that a list names must fit a rule of that list
}

// Compile compiles the permissions of an agent. Permissions that cannot be read deny everything, as none
// do: what nobody can read allows nothing. writable are the paths that need no question.
func Compile(list []spec.Permissions, dir string, writable []string) *Set {
	s := &Set{dir: dir, writable: writable}
	for _, p := range list {
		c := compiled{Permissions: p}
		if !slices.Contains(spec.PermissionModes, p.Mode) && p.Mode != "" {
			s.broken = "there is no permission mode " + string(p.Mode)
		}
		c.allow, c.ask, c.deny = s.parse(p.Allow, ParseAllow), s.parse(p.Ask, ParseGuard), s.parse(p.Deny, ParseGuard)
		for _, rules := range p.Limits() {
			c.limits = append(c.limits, s.parse(rules, ParseAllow))
		}
		s.list = append(s.list, c)
	}
	return s
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

// Decide decides about a call. granted are the rules that a person has added while the run works: they
// allow what no rule decides, and nothing else.
func (s *Set) Decide(c Call, t Tool, granted []spec.PermissionRule) Verdict {
	switch {
	case s == nil || len(s.list) == 0:
		return Verdict{Decision: Deny, Why: "there are no permissions"}
	case s.broken != "":
		return Verdict{Decision: Deny, Why: "the permissions cannot be read: " + s.broken}
	}
	c.Workspace = s.dir
	strictest := Verdict{Decision: -1}
	for _, p := range s.list {
		if v := p.decide(c, t, s.writable, granted); v.Decision > strictest.Decision { //mutant:last-permissions-decide
			strictest = v
		} else if v.Decision == strictest.Decision {
			strictest.Granted = strictest.Granted && v.Granted
		}
	}
	return strictest
}

// AsksNobody reports whether the strictest mode lets nobody be asked.
func (s *Set) AsksNobody() bool {
	return s != nil && slices.ContainsFunc(s.list, func(p compiled) bool { return p.Mode == spec.ModeDontAsk })
}

// decide applies one agent's permissions, in this order: deny, irreversible, ask, mode, allow, default.
func (p compiled) decide(c Call, t Tool, writable []string, granted []spec.PermissionRule) Verdict {
	caught, perhaps := -1, ""
	for i, r := range p.deny {
		switch r.denies(c) {
		case fits:
			caught = i
		case fitsPerhaps:
			perhaps = cmp.Or(perhaps, perhapsOf(c))
		}
	}
	if c.Tool == shellTool && !t.Command {
		perhaps = cmp.Or(perhaps, p.guardedFiles())
	}
	switch {
	case caught >= 0: //mutant:denied-by-no-rule
		return Verdict{Decision: Deny, Rule: p.Deny[caught], Why: "the rule " + name(p.Deny[caught]) + " denies it"}
	case len(p.isOutside(c)) > 0:
		return Verdict{Decision: Deny, Why: "the agent may use " + c.Tool + " only for " + strings.Join(p.isOutside(c), ", ")}
	case p.Mode == spec.ModePlan && changes(c, t): //mutant:plan-changes-something
		return Verdict{Decision: Deny, Why: "permission mode plan: nothing that changes something runs"}
	}
	v := p.undenied(c, t, perhaps, writable, granted)
	if v.Decision == Ask && p.Mode == spec.ModeDontAsk { //mutant:asks-although-nobody-may-be-asked
		v.Decision = Deny
		v.Why += ", and nobody can be asked (permission mode dontAsk)"
	}
	return v
}

// perhapsOf says why a call is asked about of which no rule tells whether it denies it.
func perhapsOf(c Call) string {
	if c.Tool == shellTool {
		return "it is decided only when it runs whether a rule denies a command of it"
	}
	return "it may show what a rule denies"
}

// guardedFiles says why every command is asked about: it could do with files what a rule forbids; "": no rule is about files.
func (p compiled) guardedFiles() string {
	for i, list := range [][]Rule{p.deny, p.ask} {
		for j, r := range list {
			if r.guardsFiles() {
				return "a command could reach files that the rule " + name([][]spec.PermissionRule{p.Deny, p.Ask}[i][j]) + " is about"
			}
		}
	}
	return ""
}

// isOutside returns the rules that keep the tool to other calls than this one; nil: none do.
func (p compiled) isOutside(c Call) (only []string) {
	for _, limit := range p.limits {
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

// undenied decides about a call that no rule denies; perhaps says why one may.
func (p compiled) undenied(c Call, t Tool, perhaps string, writable []string, granted []spec.PermissionRule) Verdict {
	for i, r := range p.ask {
		if r.catches(c) != fitsNot || r.mayFind(c) {
			return Verdict{Decision: Ask, Rule: p.Ask[i], Why: "the rule " + name(p.Ask[i]) + " asks for it"}
		}
	}
	switch {
	case t.Class == model.Irreversible: //mutant:irreversible-call-asks-nobody
		return Verdict{Decision: Ask, Why: "what it does cannot be undone"}
	case perhaps != "":
		return Verdict{Decision: Ask, Why: perhaps}
	case p.PassesShell && c.Tool == shellTool:
		return Verdict{Decision: Allow, Granted: true}
	case p.Mode == spec.ModeBypass && !(p.Confined && c.Tool == shellTool):
		return Verdict{Decision: Allow, Granted: true, Why: "permission mode bypassPermissions"}
	}
	if v, ok := p.allowed(c, granted); ok {
		return v
	}
	return p.byDefault(c, t, writable)
}

// allowed applies the rules that allow, and those that a person has added.
func (p compiled) allowed(c Call, granted []spec.PermissionRule) (Verdict, bool) {
	var plain []Rule
	for i, r := range p.allow {
		if p.Allow[i].Confined && c.Tool == shellTool {
			continue
		}
		if plain = append(plain, r); r.allows(c) {
			return Verdict{Decision: Allow, Granted: true, Rule: p.Allow[i], Why: "the rule " + name(p.Allow[i]) + " allows it"}, true
		}
	}
	for _, text := range granted {
		r, err := ParseAllow(text.Text)
		if err != nil {
			continue
		}
		if plain = append(plain, r); r.allows(c) {
			return Verdict{Decision: Allow, Granted: true, Rule: text, Why: "the rule " + name(text) + " allows it"}, true
		}
	}
	if c.Tool != shellTool {
		return Verdict{}, false
	}
	switch {
	case allowsCommand(plain, c):
		return Verdict{Decision: Allow, Why: "rules allow each of its commands"}, true
	case allowsCommand(slices.Concat(plain, p.allow), c):
		return Verdict{Decision: AllowConfined, Why: "rules of the request do not count for commands here"}, true
	}
	return Verdict{}, false
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

// byDefault decides about a call that no rule fits.
func (p compiled) byDefault(c Call, t Tool, writable []string) Verdict {
	switch {
	case c.Tool == shellTool && !t.Command:
		switch {
		case p.Mode == spec.ModeBypass:
			return Verdict{Decision: AllowConfined, Why: "permission mode bypassPermissions of a request does not count for commands here"}
		case p.Yes:
			return Verdict{Decision: AllowConfined, Why: "--yes does not count for commands here"}
		case p.Mode == spec.ModeAcceptEdits && allowsCommand(parseAll(fileCommands), c):
			return Verdict{Decision: AllowConfined, Why: "permission mode acceptEdits does not count for commands here"}
		}
		return Verdict{Decision: Ask, Why: p.notAllowedText(c)}
	case slices.Contains(WriteTools, c.Tool) && !t.Command:
		if local, ok := localPath(c.Workspace, factsOf(c).Path); !ok || matchesAny(writable, local) {
			return Verdict{Decision: Allow} // outside of the directory the tool refuses it
		}
		if p.Yes || p.Mode == spec.ModeAcceptEdits {
			return Verdict{Decision: Allow, Granted: true}
		}
		return Verdict{Decision: Ask, Why: "no rule allows writing this file"}
	case strings.HasPrefix(c.Tool, "mcp__") && t.Class != model.Read && !t.Command && !p.Yes:
		return Verdict{Decision: Ask, Why: "no rule allows " + c.Tool}
	}
	return Verdict{Decision: Allow}
}

// notAllowedText says why no rule allows a command.
func (p compiled) notAllowedText(c Call) string {
	var patterns []string
	for _, r := range p.allow {
		if r.isAbout(shellTool) && r.pattern != "" {
			patterns = append(patterns, r.pattern)
		}
	}
	if word := rule.Uncovered(patterns, factsOf(c).Command); word != "" {
		return fmt.Sprintf("a rule allows commands that begin so, but not with %.80q, which may write a file or run a program", word)
	}
	return "no rule allows this command"
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, err := doublestar.Match(p, name); return ok && err == nil })
}

// loopTools change nothing outside of the run.
var loopTools = []string{"delegate", "send_message", "ask_human", "get_run_journal", "update_run_journal", "append_run_journal_entry", "read_result"}

// changes reports whether a call may change something outside of the run.
func changes(c Call, t Tool) bool {
	return t.Class != model.Read && !slices.Contains(loopTools, c.Tool)
}

// name shows a rule with its place.
func name(r spec.PermissionRule) string {
	if r.From == "" {
		return r.Text
	}
	return r.Text + " (" + r.From + ")"
}
