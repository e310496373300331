package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// hookVerdict is the combined answer of the hooks of a point.
type hookVerdict struct {
	decision spec.HookDecision
	severity spec.Severity // the worst of those whose decision it is
	text     string        // of those whose decision it is, in order
	by       []string      // their names
	args     string        // pre_tool: the arguments that replace those of the call
	rewriter int           // number of the hook of the point that changed them, from 1; 0: the hook is asked again
	messages []model.Message
	system   *string
	shows    string // what a person reads of the call that is asked about
	// remarks are the answers of hooks that passed, if all of them did.
	remarks []spec.HookAnswer
}

// judgedAnswer is one hook's answer as it counts.
type judgedAnswer struct {
	hook   spec.Hook
	answer spec.HookAnswer
	failed string // why it is no verdict; the decision is then the hook's default
}

// judge examines each answer of a point. An invalid answer counts as a failure of
// its hook, and so does a missing one.
func (r *hookRules) judge(p spec.HookPoint, c Call, answers []spec.HookAnswer) []judgedAnswer {
	hooks := r.atCall(p, c)
	list := make([]judgedAnswer, len(hooks))
	for i, h := range hooks {
		j := judgedAnswer{hook: h, answer: spec.HookAnswer{Hook: h.Name}, failed: "it gave no answer"}
		if i < len(answers) && answers[i].Hook == h.Name {
			j.answer = answers[i]
			j.failed = r.answerError(p, c, j.answer) //mutant:nonsense-of-hooks-counts
		}
		if p != spec.HookPreTool { //mutant:arguments-after-the-call
			j.answer.Args = "" // the call has run with the arguments that it had
		}
		j.answer.Text = clip.Text(strings.TrimSpace(j.answer.Text), spec.HookTextMax)
		list[i] = j
	}
	sent := false // the messages of a later hook are present, and include the changes of the hooks before it
	for i, j := range slices.Backward(list) {
		if sent = sent || j.failed == "" && j.answer.Messages != nil && !j.hook.Report; !sent && j.answer.Sent > 0 && j.failed == "" {
			j.failed = "what it sends is lost"
		}
		if j.failed != "" {
			j.answer = spec.HookAnswer{Hook: j.hook.Name, TookMS: j.answer.TookMS, Text: "it failed: " + clip.Text(j.failed, errorShownBytes)}
			if p.Knows(j.hook.Failing) { //mutant:failing-hook-passes
				j.answer.Decision = j.hook.Failing
			}
		}
		j.answer.Severity = severityOf(p, j)
		list[i] = j
	}
	return list
}

// severityOf returns the severity of an answer: the one that it names, the one of its hook, or the default of its
// decision. Only an answer of a guardrail that does not pass has one. A wrong word leaves the decision as it is.
func severityOf(p spec.HookPoint, j judgedAnswer) spec.Severity {
	stated := j.hook.Severity
	if j.answer.Severity.Rank() > 0 {
		stated = j.answer.Severity
	}
	switch d := j.answer.Decision; {
	case p == spec.HookPreTool || d != spec.HookDeny && d != spec.HookTrip:
		return ""
	case d == spec.HookTrip:
		return cmp.Or(stated, "high")
	default:
		return cmp.Or(stated, "medium")
	}
}

// answerError returns the error in an answer, or "" if the answer is valid.
func (r *hookRules) answerError(p spec.HookPoint, c Call, a spec.HookAnswer) string {
	switch {
	case a.Failed != "":
		return a.Failed
	case !p.Knows(a.Decision):
		return fmt.Sprintf("%q is not a decision at %s", clip.Text(string(a.Decision), message.NameBytesShown), p)
	case a.System != nil && len(*a.System) > hookSystemMax:
		return fmt.Sprintf("its system prompt has %d bytes, and may have %d", len(*a.System), hookSystemMax)
	case a.Messages != nil && p == spec.HookContext:
		if err := message.Sendable(a.Messages); err != nil {
			return err.Error()
		}
		for _, m := range a.Messages { // otherwise the hook alone would say what they cost
			if m.Media != nil && (m.Role != model.User || !slices.EqualFunc(m.Media, r.media, sameMedia)) {
				return "it would send media that are not those of the task"
			}
		}
	case a.Args != "" && p == spec.HookPreTool:
		if problem, _ := r.tools.argumentError(c.Name, a.Args); problem != "" {
			return "of what it gave instead, " + problem
		}
	}
	return ""
}

// hookSystemMax bounds the system prompt that a hook computes for a turn.
const hookSystemMax = 64 << 10

func sameMedia(a, b model.Media) bool {
	return a.Kind == b.Kind && a.Type == b.Type && a.Name == b.Name && a.Ref == b.Ref && a.Size == b.Size && a.Most == b.Most && a.Likely == b.Likely
}

// weigh combines all answers into one verdict: the strictest answer counts, whichever hook gave it.
func (r *hookRules) weigh(p spec.HookPoint, c Call, answers []spec.HookAnswer) hookVerdict {
	var v hookVerdict
	list := r.judge(p, c, answers)
	rank := len(p.Decisions())
	for _, j := range list {
		at := slices.Index(p.Decisions(), j.answer.Decision)
		if !j.hook.Report && at >= 0 && at < rank { //mutant:strictest-hook
			rank, v.decision = at, j.answer.Decision
		}
	}
	var texts []string
	instead := false // there is a result: no arguments make the call run
	for i, j := range list {
		if j.hook.Report {
			continue
		}
		if v.decision != spec.HookPass && j.answer.Decision == v.decision || v.decision == spec.HookPass && j.answer.Args != "" {
			if j.answer.Severity.Rank() > v.severity.Rank() {
				v.severity = j.answer.Severity
			}
			if !slices.Contains(v.by, j.hook.Name) { // a parent's approval rules apply in addition to the child's own
				v.by = append(v.by, j.hook.Name)
			}
			if j.answer.Text != "" && !slices.Contains(texts, j.answer.Text) {
				texts = append(texts, j.answer.Text)
			}
		}
		if j.answer.Args != "" && (v.args == "" || v.args == c.Args) {
			v.args, v.rewriter = j.answer.Args, rewriterIndex(i, j.answer, c)
		}
		if j.hook.Name == spec.PermissionHook {
			v.shows = j.answer.Shows
		}
		instead = instead || j.answer.Decision == spec.HookOverride && j.answer.Args == ""
		if j.answer.Messages != nil {
			v.messages = j.answer.Messages
		}
		if j.answer.System != nil && p == spec.HookContext && j.failed == "" {
			v.system = j.answer.System
		}
		if passes := v.decision == spec.HookPass || v.decision == spec.HookAllow; passes && j.failed == "" {
			v.remarks = append(v.remarks, j.answer)
		}
	}
	if v.decision == spec.HookOverride && instead {
		v.args = ""
	}
	v.text = clip.Text(strings.Join(texts, "\n\n"), spec.HookTextMax)
	return v
}

// rewriterIndex returns the number of the i-th hook that was asked about a call, among all hooks of
// its gate. A hook that also wants a person to decide is asked about its own arguments, too: 0.
func rewriterIndex(i int, a spec.HookAnswer, c Call) int {
	switch {
	case a.Decision == spec.HookAsk:
		return 0
	case c.Gate.Rewriter > 0 && i >= c.Gate.Rewriter-1:
		return i + 2
	}
	return i + 1
}

// runsWithArgs reports whether the call may run with the arguments that a hook gave.
func (v hookVerdict) runsWithArgs() bool {
	return v.args != "" && v.decision != spec.HookDeny && v.decision != spec.HookSkip && v.decision != spec.HookPrevent
}

// reasonText is the verdict in words, for people and models.
func (v hookVerdict) reasonText() string {
	who := "hook " + strings.Join(v.by, ", ")
	if v.text == "" {
		return who
	}
	return who + ": " + v.text
}
