package permission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// The lethal trifecta: an agent that reads text from outside and private data and can send data out can
// be made to leak the data.

// TaintUsage says what ParseTaint reads.
const TaintUsage = "ask, deny or off: what holds for calls that send data out, once an agent has read text from outside"

// ParseTaint reads a value of spec.Permissions.Taint; "" states none.
func ParseTaint(text string) (string, error) {
	if text = strings.ToLower(strings.TrimSpace(text)); !slices.Contains([]string{"", spec.TaintOff, spec.TaintAsk, spec.TaintDeny}, text) {
		return "", fmt.Errorf("%.40q is not %s", text, TaintUsage)
	}
	return text, nil
}

// ByTaint is the author of a verdict about a call that sends data out.
const ByTaint = "text from outside"

// RecordsTaint reports whether the agent's run records which text from outside its agents have read.
func (s *Set) RecordsTaint() bool {
	return s != nil && slices.ContainsFunc(s.list, func(p agentRules) bool { return p.Taint != "" })
}

// BringsOutside reports whether the result of a call is text from outside.
func (s *Set) BringsOutside(c Call, tool model.ToolSpec, isCommand bool) bool {
	return dataOfCall(c, DataOf(tool, isCommand, s.taintFiles())).Outside
}

func (s *Set) taintFiles() bool {
	return s != nil && slices.ContainsFunc(s.list, func(p agentRules) bool { return p.TaintFiles })
}

// DescribeTaint says what an agent has read, for questions and results.
func DescribeTaint(t *spec.Taint) string {
	if t == nil {
		return ""
	}
	run := ""
	if t.Run != "" {
		run = " in the run " + Visible(t.Run)
	}
	switch {
	case t.Tool != "":
		return fmt.Sprintf("this run has read text from outside: %s, call %s of %s%s", Visible(t.Tool), t.Call, t.Agent, run)
	case t.Source == "memory":
		return "this run has read text from outside: notes that were written after such text was read"
	}
	return "this run has read text from outside: " + Visible(t.Source) + run
}

// decideTainted decides about a call that is not denied, if it sends data out and the agent has read text from outside:
// a rule that allows does not hold, unless it says that it does.
func (p agentRules) decideTainted(v Verdict, c Call, t Tool, added []spec.PermissionRule) Verdict {
	if t.TaintReason == "" || p.Taint == "" || p.Taint == spec.TaintOff || !dataOfCall(c, t.Data).Sends || p.allowsTainted(c, added) { //mutant:tainted-call-asks-nobody
		return v
	}
	why := "it sends data out, and " + t.TaintReason
	if v.Decision == Ask {
		why = v.Why + "; " + why
	} else {
		v.By, v.Rule = ByTaint, spec.PermissionRule{}
	}
	v.Why, v.MayWriteAny, v.Tainted = why, false, true
	switch confinable := c.Tool == shellTool && !t.Command; {
	case confinable: // without a network it sends nothing
		v.Decision, v.OnlyConfined = max(v.Decision, AllowConfined), p.Taint == spec.TaintDeny
	case p.Taint == spec.TaintDeny: //mutant:denied-by-no-taint
		v.Decision, v.By, v.Rule = Deny, ByTaint, spec.PermissionRule{}
	default:
		v.Decision = Ask
	}
	return v
}

// allowsTainted reports whether a rule allows a call and says that it holds for agents that
// have read text from outside.
func (p agentRules) allowsTainted(c Call, added []spec.PermissionRule) bool {
	var list []Rule
	for i, r := range p.allow {
		if p.Allow[i].AllowsTainted {
			list = append(list, r)
		}
	}
	for _, source := range added {
		if r, err := ParseAllow(source.Text); err == nil && source.AllowsTainted {
			list = append(list, r)
		}
	}
	return slices.ContainsFunc(list, func(r Rule) bool { return r.allows(c) }) || c.Tool == shellTool && allowsCommand(list, c)
}
