package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// verdict is what the hooks of a point say together.
type verdict struct {
	decision HookDecision
	text     string   // of those whose decision it is, in order
	by       []string // their names
	args     string   // pre_tool: what the call runs with instead
	messages []model.Message
	// remarks are of those that passed, where all of them did.
	remarks []HookAnswer
}

// judged is one hook's answer as it counts.
type judged struct {
	hook   Hook
	answer HookAnswer
	failed string // why it is no verdict; the decision is then the hook's default
}

// judge looks at each answer of a point. An answer that makes no sense is a
// failure of its hook, and so is one that is missing.
func (s State) judge(p HookPoint, c Call, answers []HookAnswer) []judged {
	hooks := s.hooksAt(p, c.Name)
	list := make([]judged, len(hooks))
	for i, h := range hooks {
		j := judged{hook: h, answer: HookAnswer{Hook: h.Name}, failed: "it gave no answer"}
		if i < len(answers) && answers[i].Hook == h.Name {
			j.answer = answers[i]
			j.failed = s.nonsense(p, c, j.answer) //mutant:nonsense-of-hooks-counts
		}
		j.answer.Text = clip(strings.TrimSpace(j.answer.Text), HookTextMax)
		list[i] = j
	}
	sent := false // what later hooks made is there, and in it what those before them did
	for i, j := range slices.Backward(list) {
		if sent = sent || j.failed == "" && j.answer.Messages != nil && !j.hook.Report; !sent && j.answer.Sent > 0 && j.failed == "" {
			j.failed = "what it sends is lost"
		}
		if j.failed != "" {
			j.answer = HookAnswer{Hook: j.hook.Name, TookMS: j.answer.TookMS, Text: "it failed: " + clip(j.failed, errorShown)}
			if p.Knows(j.hook.Failing) { //mutant:failing-hook-passes
				j.answer.Decision = j.hook.Failing
			}
		}
		list[i] = j
	}
	return list
}

// nonsense says what is wrong with an answer, if anything is.
func (s State) nonsense(p HookPoint, c Call, a HookAnswer) string {
	switch {
	case a.Failed != "":
		return a.Failed
	case !p.Knows(a.Decision):
		return fmt.Sprintf("%q is no decision at %s", clip(string(a.Decision), nameShown), p)
	case a.Messages != nil && p == HookContext:
		if err := Sendable(a.Messages); err != nil {
			return err.Error()
		}
		for _, m := range a.Messages { // else what they cost would be its word
			if m.Media != nil && (m.Role != model.User || !slices.EqualFunc(m.Media, s.Task.Media, sameMedia)) {
				return "it would send media that are not those of the task"
			}
		}
	case a.Args != "" && p == HookPreTool:
		if what, _ := s.misfit(c.Name, a.Args); what != "" {
			return "of what it gave instead, " + what
		}
	}
	return ""
}

func sameMedia(a, b model.Media) bool {
	return a.Kind == b.Kind && a.Type == b.Type && a.Name == b.Name && a.Ref == b.Ref && a.Size == b.Size && a.Most == b.Most && a.Likely == b.Likely
}

// weigh makes one verdict of all answers: the strictest counts, whoever gave it.
func (s State) weigh(p HookPoint, c Call, answers []HookAnswer) verdict {
	var v verdict
	list := s.judge(p, c, answers)
	rank := len(strictness[p])
	for _, j := range list {
		at := slices.Index(strictness[p], j.answer.Decision)
		if !j.hook.Report && at >= 0 && at < rank { //mutant:strictest-hook
			rank, v.decision = at, j.answer.Decision
		}
	}
	var texts []string
	instead := false // there is a result: no arguments make the call run
	for _, j := range list {
		if j.hook.Report {
			continue
		}
		if v.decision != HookPass && j.answer.Decision == v.decision || v.decision == HookPass && j.answer.Args != "" {
			if !slices.Contains(v.by, j.hook.Name) { // a parent's approval rules stand beside the child's own
				v.by = append(v.by, j.hook.Name)
			}
			if j.answer.Text != "" && !slices.Contains(texts, j.answer.Text) {
				texts = append(texts, j.answer.Text)
			}
		}
		if v.args == "" {
			v.args = j.answer.Args
		}
		instead = instead || j.answer.Decision == HookOverride && j.answer.Args == ""
		if j.answer.Messages != nil {
			v.messages = j.answer.Messages
		}
		if passes := v.decision == HookPass || v.decision == HookAllow; passes && j.failed == "" {
			v.remarks = append(v.remarks, j.answer)
		}
	}
	if v.decision == HookOverride && instead {
		v.args = ""
	}
	v.text = clip(strings.Join(texts, "\n\n"), HookTextMax)
	return v
}

// why is the verdict in words, for people and models.
func (v verdict) why() string {
	who := "hook " + strings.Join(v.by, ", ")
	if v.text == "" {
		return who
	}
	return who + ": " + v.text
}
