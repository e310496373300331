package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/permission"
)

// The permissions of the task decide about each call right before it begins, with the arguments that it
// would run with. They need no entry of the log: a replay decides alike. If a person is to be asked, the
// hook spec.PermissionHook runs on the node with the other hooks before the call, and its answer is an
// entry: it shows what the call would change there.

// RuleAllowed is a rule that a person has added for the rest of the run.
type RuleAllowed struct {
	Rule spec.PermissionRule `msgpack:"r"`
}

// AllowRule tells the supervisor of a rule that a person has added with an answer to this agent.
type AllowRule struct {
	Rule spec.PermissionRule `msgpack:"r"`
}

// Kind is the fact's word in logs.
func (RuleAllowed) Kind() string { return "rule_allowed" }

// Kind is the message's word in the supervisor's log.
func (AllowRule) Kind() string { return "allow_rule" }
func (AllowRule) effect()      {}

// addedRulesMax bounds the rules that people add to one run.
const addedRulesMax = 256

// compilePermissions compiles the permissions of a task; nil: it has none.
func compilePermissions(t spec.Task) *permission.Set {
	if t.Permissions == nil {
		return nil
	}
	return permission.Compile(t.Permissions, t.Workspace, t.Writable)
}

// permit is what the permissions say about a call, while it waits or runs.
type permit struct {
	Query       string // the rules of the permission hook; "": the call needs no approval
	MayWriteAny bool   // the tool may write any file of the directory
	Asked       bool   // a person has to approve the call
	Digest      string // of the call that a person has approved
	Tainted     bool   // it sends data out, and the agent has read text from outside
	Rights      int    // how many permissions the agent had when they decided: a narrowing adds one
}

// decidePermission decides about a call with its current arguments.
func (s *State) decidePermission(c Call) permission.Verdict {
	if s.permissions == nil { // see spec.Task
		return permission.Verdict{Decision: permission.Allow}
	}
	if c.Child != "" && namesForeign(s.Task.ForeignMembers, c.Args) { // the member that represents the agent asks
		return deniedOnly(s, c)
	}
	return s.permissions.Decide(permission.Call{Tool: c.Name, Args: c.Args}, permissionTool(s, c), s.AddedRules)
}

// deniedOnly allows a delegation unless a rule denies it: the agent that carries it out asks for approval.
func deniedOnly(s *State, c Call) permission.Verdict {
	v := s.permissions.Decide(permission.Call{Tool: c.Name, Args: c.Args}, permission.Tool{Class: s.tools.specOf(c.Name).Class}, s.AddedRules)
	if v.Decision == permission.Deny {
		return v
	}
	return permission.Verdict{Decision: permission.Allow}
}

// applyPermissions applies the permissions to a call: it may run, ends as denied, or asks.
func applyPermissions(s *State, c Call) (*State, Call) {
	v := s.decidePermission(c)
	c.Gate.Permit = permit{Tainted: v.Tainted, Rights: len(s.Task.Permissions)}
	switch v.Decision {
	case permission.Allow:
		c.Gate.Permit.MayWriteAny = v.MayWriteAny
		if v.Why != "" {
			s.events.publishVerdict(c, spec.HookAllow, v, s.tools.digest(c))
		}
		return s, c
	case permission.Ask, permission.AllowConfined:
		query, err := permissionQuery(v)
		if err == nil {
			c.Gate.Permit.Query = query //mutant:call-to-ask-about-asks-nobody
			return s, c
		}
		v.Why = "the question about it cannot be written: " + err.Error()
	case permission.Deny:
	}
	c = c.deny(c.notRunText() + ": denied: " + v.Why) //mutant:call-that-a-rule-denies-runs
	s.events.publishVerdict(c, spec.HookDeny, v, s.tools.digest(c))
	return s, c
}

// permissionQuery is what the permission hook reads to prepare the question: verdicts of equal queries ask for the same reason.
func permissionQuery(v permission.Verdict) (string, error) {
	raw, err := json.Marshal(spec.PermissionQuery{Why: v.Why, Confined: v.Decision == permission.AllowConfined, OnlyConfined: v.OnlyConfined})
	return string(raw), err
}

// publishVerdict publishes what the permissions have decided about a call.
func (e *stepEvents) publishVerdict(c Call, d spec.HookDecision, v permission.Verdict, digest string) {
	e.publish(hookEvents, decisionKind(d), event.ToolDecided{Call: c.ID, Tool: c.Name, Decision: d, By: []string{v.By}, Why: v.Why, Rule: v.Rule.Text, From: v.Rule.From, Digest: digest})
}

// hooks returns the hook that prepares the question about the call, if it needs approval.
func (p permit) hooks() []spec.Hook {
	if p.Query == "" {
		return nil
	}
	return []spec.Hook{{Name: spec.PermissionHook, Point: spec.HookPreTool, Failing: spec.HookDeny, Rules: p.Query}}
}

// mayAsk reports whether a person may be asked about a call.
func (s *State) mayAsk() bool {
	return mayAskPeople(s) && !s.permissions.DeniesInsteadOfAsking()
}

// digest is the SHA-256 of a call: of its tool, as the model was offered it, and of its arguments.
func (t *toolRules) digest(c Call) string { return permission.Digest(t.specOf(c.Name), c.Args) }

// approvalError returns why a call must not begin although its gate is open: a person was asked about it,
// and has not approved this call with these arguments.
func (t *toolRules) approvalError(c Call) string {
	if c.Gate.Permit.Asked && c.Gate.Permit.Digest != t.digest(c) {
		return "not run: what a person approved is another call, or has other arguments"
	}
	return ""
}

// alwaysRule is the rule that an answer may add, so that such calls are not asked about again; "" if a rule
// or a hook wants to be asked each time.
func (s *State) alwaysRule(c Call) string {
	if c.Gate.Permit.Query == "" || s.permissions == nil {
		return ""
	}
	r := permission.RuleFor(permission.Call{Tool: c.Name, Args: c.Args, Workspace: s.Task.Workspace})
	if r == "" {
		return ""
	}
	with := addRule(trialCopy(s), withApprovals(s, spec.PermissionRule{Text: r, AllowsTainted: c.Gate.Permit.Tainted}))
	if with.decidePermission(c).Decision != permission.Allow {
		return ""
	}
	return r
}

// describeQuestion is the text of the question about a call: what the call would do, generated from its
// arguments, and why a person is asked.
func (c Call) describeQuestion(t *spec.Task) string {
	shows := c.Gate.Shows
	if shows == "" {
		shows = permission.Show(c.Name, c.Args)
	}
	because, byRules := strings.CutPrefix(c.Gate.Person, "hook "+spec.PermissionHook+": ")
	if !byRules {
		because = "asked by " + c.Gate.Person
	}
	shows = clip.Middle(strings.TrimRight(shows, "\n"), spec.HookShowsMax)
	if clip.IsMiddle(shows) {
		shows += "\n" + c.wholeText(t)
	}
	return fmt.Sprintf("%s\n%s\n(%s)", spec.CallQuestion, shows, permission.Visible(because))
}

// wholeText says how a person reads all of a call that a question shows in part.
func (c Call) wholeText(t *spec.Task) string {
	if c.Gate.Rewrites > 0 {
		return "(a hook gave these arguments: only `troupe export RUN --logs` has the whole)"
	}
	return fmt.Sprintf("(the whole: troupe transcript %s --agent %s --call %s)", t.Run, t.ID, c.ID)
}

// grantRule adds the rule of an answer for the rest of the run, and tells the supervisor.
func grantRule(s *State, f Answered, q Park) (*State, []Effect) {
	if f.Decision != spec.Approve || f.Always != AlwaysRun || q.Rule == "" {
		return s, nil
	}
	r := withApprovals(s, spec.PermissionRule{Text: q.Rule, From: "answer to " + q.Query, AllowsTainted: q.Tainted != nil})
	s = addRule(s, r)
	return s, []Effect{AllowRule{Rule: r}}
}

// handleRuleAllowed adds a rule that a person has added in an answer to another agent of the run.
func handleRuleAllowed(s *State, f RuleAllowed) (*State, []Effect) { return addRule(s, f.Rule), nil }

func addRule(s *State, r spec.PermissionRule) *State {
	same := func(o spec.PermissionRule) bool {
		return o.Text == r.Text && o.Approvals >= r.Approvals && (o.AllowsTainted || !r.AllowsTainted)
	}
	if len(s.AddedRules) < addedRulesMax && !slices.ContainsFunc(s.AddedRules, same) {
		s.AddedRules = append(slices.Clip(s.AddedRules), r)
	}
	return s
}

// AlwaysRun says that an approval counts for calls like its own until the run ends.
const AlwaysRun = "run"

// questionTimer is due when the open question expires.
const questionTimer = "question"

// expiredAnswer is the answer to a question that has expired.
func expiredAnswer(s *State) Answered {
	within := time.Duration(s.Task.LoopOptions.QuestionMS) * time.Millisecond
	return Answered{Query: s.Suspended.Question.Query, Decision: spec.Deny, Text: "nobody answered within " + within.String(), By: byClock}
}

// handleQuestionTimer denies a call whose question has expired.
func handleQuestionTimer(s *State) (*State, []Effect) {
	q := s.Suspended.Question
	switch {
	case !s.Suspended.asksPerson() || q.Due == 0:
		return s, nil
	case s.Now < q.Due: //mutant:question-expires-early
		return s, []Effect{Arm{Timer: questionTimer, Due: q.Due}}
	}
	return handleAnswered(s, expiredAnswer(s))
}

// byClock is the author of the denial of a question that has expired.
const byClock = event.ByClock

// armNewQuestion arms the timer of a question that the step has asked.
func armNewQuestion(before, s *State) []Effect {
	if old := before.Suspended.Question; old.Query == s.Suspended.Question.Query && old.Due == s.Suspended.Question.Due {
		return nil
	}
	return s.Suspended.armQuestion()
}

// armQuestion arms the timer of the open question.
func (w suspension) armQuestion() []Effect {
	if !w.asksPerson() || w.Question.Due == 0 {
		return nil
	}
	return []Effect{Arm{Timer: questionTimer, Due: w.Question.Due}}
}
