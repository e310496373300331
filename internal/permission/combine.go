package permission

import (
	"cmp"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
)

// Merge adds the permissions of a definition to those of its run: the rules of both count. The mode of the definition
// counts if the run has none or a less strict one: the mode that a user sets for a run must not depend on an agent
// file.
func Merge(run spec.Permissions, own *spec.Permissions) spec.Permissions {
	run.Narrows = false // those of a run and a definition decide by themselves
	if own == nil {
		return run
	}
	run.Allow, run.Ask = slices.Concat(run.Allow, own.Allow), slices.Concat(run.Ask, own.Ask)
	run.Deny = slices.Concat(run.Deny, own.Deny)
	if limits := slices.Concat(LimitingRules(*own), LimitingRules(run)); len(limits) > 0 {
		run.Only, run.Within = limits[0], limits[1:]
	}
	run.Confined = run.Confined || own.Confined
	switch {
	case run.Mode == "":
		run.Mode = own.Mode
	case own.Mode != "":
		run.Mode = StricterMode(own.Mode, run.Mode)
	}
	run.Yes, run.ShellForChildren, run.NoUserNotes, run.UserEnv = run.Yes || own.Yes, run.ShellForChildren || own.ShellForChildren, run.NoUserNotes || own.NoUserNotes, run.UserEnv || own.UserEnv
	run.Approvals, run.Taint, run.TaintFiles = max(run.Approvals, own.Approvals), StricterTaint(run.Taint, own.Taint), run.TaintFiles || own.TaintFiles
	return run
}

// Contains reports whether one of the permissions decides as p does, wherever their rules were written.
func Contains(list []spec.Permissions, p spec.Permissions) bool {
	return slices.ContainsFunc(list, func(o spec.Permissions) bool { return decideAlike(o, p) })
}

func decideAlike(p, o spec.Permissions) bool {
	same := func(a, b []spec.PermissionRule) bool {
		return slices.EqualFunc(a, b, func(x, y spec.PermissionRule) bool {
			return x.Text == y.Text && x.Confined == y.Confined && x.AllowsTainted == y.AllowsTainted
		})
	}
	return p.Mode == o.Mode && p.Confined == o.Confined && p.Yes == o.Yes && p.ShellForChildren == o.ShellForChildren && p.NoUserNotes == o.NoUserNotes && p.UserEnv == o.UserEnv && p.Approvals == o.Approvals &&
		p.Taint == o.Taint && p.TaintFiles == o.TaintFiles && p.Narrows == o.Narrows &&
		same(p.Allow, o.Allow) && same(p.Ask, o.Ask) && same(p.Deny, o.Deny) && slices.EqualFunc(LimitingRules(p), LimitingRules(o), same)
}

// LimitingRules are Only and Within: a call of a tool that a list names must fit a rule of that list.
func LimitingRules(p spec.Permissions) (lists [][]spec.PermissionRule) {
	if len(p.Only) > 0 {
		lists = append(lists, p.Only)
	}
	return append(lists, p.Within...)
}

// RuleBytes is how many bytes the rules of p take in an entry.
func RuleBytes(p spec.Permissions) (bytes int) {
	for _, rules := range slices.Concat([][]spec.PermissionRule{p.Allow, p.Ask, p.Deny}, LimitingRules(p)) {
		for _, r := range rules {
			bytes += len(r.Text) + len(r.From) + ruleOverhead
		}
	}
	return bytes
}

// ruleOverhead is the size of a rule in an entry without its texts.
const ruleOverhead = 8

// StricterMode returns the stricter of two modes; "" is ModeDefault.
func StricterMode(a, b spec.PermissionMode) spec.PermissionMode {
	rank := func(m spec.PermissionMode) int {
		return slices.Index(spec.PermissionModes, cmp.Or(m, spec.ModeDefault)) // an unknown mode is the strictest
	}
	if rank(b) < rank(a) {
		return b
	}
	return a
}

// StrictestMode is the strictest mode of permissions that are decided by together.
func StrictestMode(list []spec.Permissions) spec.PermissionMode {
	strictest := spec.ModeBypass
	for _, p := range list {
		if p.Narrows && p.Mode == "" {
			continue // it has none
		}
		strictest = StricterMode(cmp.Or(p.Mode, spec.ModeDefault), strictest)
	}
	return strictest
}

// WidensMode reports whether a mode is not stricter than the one that holds.
func WidensMode(m, holds spec.PermissionMode) bool {
	return m != "" && (m == holds || StricterMode(m, holds) != m)
}

// taintModes are the values of spec.Permissions.Taint, the strictest last.
var taintModes = []string{"", spec.TaintOff, spec.TaintAsk, spec.TaintDeny}

// StricterTaint returns the stricter of two values of spec.Permissions.Taint.
func StricterTaint(a, b string) string {
	rank := func(mode string) int {
		if i := slices.Index(taintModes, mode); i >= 0 {
			return i
		}
		return len(taintModes) // an unknown value is the strictest
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}
