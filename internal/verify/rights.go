package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// bindingPoints are the points at which the hooks of a parent bind its children, too.
var bindingPoints = []string{"input", "output", "post_sampling", "pre_tool", "tool_error", "tool_result", "post_tool"}

// ruleSeparator separates the text of a permission rule from where it was written.
const ruleSeparator = "\x00"

// checkRights checks the rights of an agent against those of the run and of its parent.
func (l *agentLog) checkRights() {
	if l.task == nil {
		return
	}
	addFinding := func(format string, args ...any) { l.addFinding(Rights, l.taskAt, format, args...) }
	t := l.task.Task
	for _, tool := range t.Tools {
		if slices.Contains(t.Forbidden, tool.Name) {
			addFinding("the agent is offered %s, which is forbidden to it", tool.Name)
		}
	}
	if super := l.run.super(); len(super.opened) > 0 {
		checkRunRights(l.task, super.opened[0], addFinding)
	}
	if parent := l.run.parentOf(l.log); parent != nil {
		l.run.checkChildRights(l.task, parent.task, addFinding)
		checkChildContext(l.run, l.log, parent)
		checkNarrowedChild(l.log, parent)
	}
}

// checkRunRights checks that an agent has nothing that its run does not have.
func checkRunRights(agent *submittedBody, run openedBody, addFinding func(string, ...any)) {
	t := agent.Task
	for _, tool := range t.Tools {
		i := slices.IndexFunc(run.Tools, func(o toolBody) bool { return o.Name == tool.Name })
		switch {
		case i < 0:
			addFinding("the agent is offered %s, which is not a tool of the run", tool.Name)
		case run.Tools[i].Class != tool.Class:
			addFinding("the agent is offered %s as %s, and the run has it as %s", tool.Name, tool.Class, run.Tools[i].Class)
		}
	}
	for _, c := range t.Commands {
		if !slices.Contains(run.Commands, c) {
			addFinding("the agent has the command %s, which is none of the run", c.Name)
		}
	}
	for _, path := range t.Writable {
		if !slices.Contains(run.Writable, path) {
			addFinding("the agent may write %q, which the run may not", path)
		}
	}
}

// checkChildRights checks that an agent has no right that its parent lacks.
func (v *verifier) checkChildRights(agent, parent *submittedBody, addFinding func(string, ...any)) {
	t, p := agent.Task, parent.Task
	for _, name := range p.Forbidden {
		if !slices.Contains(t.Forbidden, name) {
			addFinding("%s is forbidden to the parent %s and not to the agent", name, p.ID)
		}
	}
	for i, own := range p.Permissions {
		if !slices.ContainsFunc(t.Permissions, func(o permissionsBody) bool { return o.text() == own.text() }) {
			addFinding("the permissions %d of the parent %s do not bind the agent", i+1, p.ID)
		}
	}
	for _, h := range p.LoopOptions.Hooks {
		if h.Of != "root" && slices.Contains(bindingPoints, h.Point) && !slices.Contains(t.LoopOptions.Hooks, h) {
			addFinding("the hook %q of the parent %s does not bind the agent", cmp.Or(h.Name, h.Command), p.ID)
		}
	}
	for _, r := range t.AddedRules {
		if text, _, _ := strings.Cut(string(r), ruleSeparator); !v.addedRules[text] {
			addFinding("the agent has the rule %.200q, which nobody added to the run", text)
		}
	}
}

// text is what permissions decide by, wherever their rules were written.
func (p permissionsBody) text() string {
	limits := p.Within
	if len(p.Only) > 0 {
		limits = slices.Insert(slices.Clone(limits), 0, p.Only)
	}
	lists := []any{ruleTexts(p.Allow), ruleTexts(p.Ask), ruleTexts(p.Deny)}
	for _, list := range limits {
		lists = append(lists, ruleTexts(list))
	}
	return fmt.Sprintf("%q %v %v %v %v %v %v %d %q %v %q", p.Mode, p.Narrows, p.Confined, p.Yes, p.ShellForChildren, p.NoUserNotes, p.UserEnv,
		p.Approvals, p.Taint, p.TaintFiles, lists)
}

func ruleTexts(rules [][]byte) []string {
	texts := make([]string, len(rules))
	for i, r := range rules {
		text, rest, _ := strings.Cut(string(r), ruleSeparator)
		_, third, confined := strings.Cut(rest, ruleSeparator)
		texts[i] = fmt.Sprintf("%s %v %q", text, confined, third)
	}
	return texts
}
