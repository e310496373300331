package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// contextChange is a change of the prompt and the tools of an agent while it works: a client's in the log of the run,
// or the supervisor's message in the log of an agent.
type contextChange struct {
	entry uint64
	cause uint64 // in the log of the run; 0: a client made the entry
	body  contextBody
}

func (l *log) readContext(item mailbox.Item, cause uint64) {
	var b contextBody
	if !l.decode(item, &b) {
		return
	}
	l.contexts = append(l.contexts, contextChange{l.n, cause, b})
	if l.isSuper() {
		return
	}
	for _, t := range b.Tools {
		l.classes[t.Name] = t.Class
	}
}

// checkContexts checks the changes of an agent's context against those that clients asked for in the log of the run.
func (l *agentLog) checkContexts() {
	super := l.run.super()
	for _, c := range l.contexts {
		switch {
		case c.cause == 0 && c.body.changesTools():
			l.addFinding(Rights, c.entry, "a client changes the tools of the agent in its own log, and only its supervisor may")
		case c.cause == 0 || c.cause > super.n: // layers of the agent alone, or the log of the run was read before
		default:
			l.checkContextCause(c)
			for _, t := range c.body.Tools {
				l.checkAddedTool(c, t)
			}
			l.checkProviders(c)
		}
	}
}

// changesTools reports whether a change is of more than the prompt.
func (b contextBody) changesTools() bool {
	return len(b.Tools)+len(b.Commands)+len(b.Servers)+len(b.Without)+len(b.Hashes) > 0
}

// checkContextCause checks a message of the supervisor against the client's change that it names as its cause.
func (l *agentLog) checkContextCause(c contextChange) {
	super, rule, why := l.run.super(), Cause, "changes no context"
	for _, asked := range super.contexts {
		if asked.entry != c.cause {
			continue
		}
		if rule, why = compareContexts(l.run, l.at.Agent(), asked.body, c.body); why == "" {
			return
		}
	}
	l.addFinding(rule, c.entry, "the context of the agent changes by entry %d of %s, which %s", c.cause, super.at, why)
}

// compareContexts says what the client's change lacks that an agent got by it; "": nothing.
func compareContexts(v *verifier, agent string, asked, got contextBody) (rule Rule, why string) {
	isNamed := asked.Agent == agent || asked.Agent == "" && (agent == "root" || v.successors[agent])
	if !isNamed && asked.Agent != "" && !isWithin(agent, asked.Agent) {
		return Rights, "is about " + asked.Agent
	}
	for _, t := range got.Tools {
		if !isNamed || !slices.Contains(asked.Tools, t) {
			return Rights, fmt.Sprintf("does not add %s as %s to it", t.Name, t.Class)
		}
	}
	for _, name := range got.Without {
		if !slices.Contains(asked.Without, name) {
			return Rights, "does not remove " + name
		}
	}
	for _, name := range asked.Without {
		if !slices.Contains(got.Without, name) {
			return Rights, fmt.Sprintf("removes %s, which the agent keeps", name)
		}
	}
	for _, layer := range got.Layers {
		if !slices.ContainsFunc(asked.Layers, func(a layerBody) bool { return a.sets(layer, isNamed) }) {
			return Cause, fmt.Sprintf("does not set its layer %q", layer.Name)
		}
	}
	return Cause, ""
}

// sets reports whether a client's layer is what an agent got. An agent below the one that is named inherits it or, if
// that one no longer passes it on, loses it.
func (a layerBody) sets(got layerBody, isNamed bool) bool {
	return a.Name == got.Name && (a.Text == got.Text || !isNamed && got.Text == "")
}

// checkAddedTool checks that a tool may be added to an agent: if the run has it, it has it by that class, no rule
// denies it to the agent, and the agent's parent has the right to it.
func (l *agentLog) checkAddedTool(c contextChange, t toolBody) {
	super := l.run.super()
	if l.task == nil || len(super.opened) == 0 {
		return
	}
	i := slices.IndexFunc(super.opened[0].Tools, func(o toolBody) bool { return o.Name == t.Name })
	if i >= 0 && super.opened[0].Tools[i].Class != t.Class {
		l.addFinding(Rights, c.entry, "%s is added as %s, and the run has it as %s", t.Name, t.Class,
			super.opened[0].Tools[i].Class)
	}
	if denies := l.denierOf(t.Name); denies != "" {
		l.addFinding(Rights, c.entry, "%s is added to the agent, and the definition of %s denies it", t.Name, denies)
	}
	parent := l.run.parentOf(l.log)
	switch {
	case parent == nil:
	case i < 0:
		l.addFinding(Rights, c.entry,
			"%s is added to the agent, and its parent %s has no right to it: it is not a tool of the run", t.Name,
			parent.at.Agent())
	case slices.Contains(parent.task.Task.Forbidden, t.Name) || l.run.removedBefore(parent, t.Name, c.cause) > 0:
		l.addFinding(Rights, c.entry, "%s is added to the agent, and its parent %s has no right to it", t.Name,
			parent.at.Agent())
	}
}

// checkProviders checks that a change brings no commands and servers but those of the run.
func (l *agentLog) checkProviders(c contextChange) {
	super := l.run.super()
	if len(super.opened) == 0 {
		return
	}
	run := super.opened[0]
	for _, command := range c.body.Commands {
		if !slices.Contains(run.Commands, command) {
			l.addFinding(Rights, c.entry, "the agent gets the command %s, which is none of the run", command.Name)
		}
	}
	for _, server := range c.body.Servers {
		if !slices.Contains(run.Servers, server) {
			l.addFinding(Rights, c.entry, "the agent gets the server %s, which is none of the run", server.Name)
		}
	}
}

// parentOf returns the log of an agent's parent: the agent that has delegated to it, whatever its task says; nil: it
// has no parent, or no log of it has a task.
func (v *verifier) parentOf(l *log) *log {
	if l.task == nil {
		return nil
	}
	if p := v.logOf(cmp.Or(v.parents[l.at.Agent()], l.task.Task.Parent)); p != nil && p.task != nil && p != l {
		return p
	}
	return nil
}

// lineOf returns the log of an agent, and those of the agents above it.
func (v *verifier) lineOf(l *log) (line []*log) {
	for ; l != nil && !slices.Contains(line, l); l = v.parentOf(l) {
		line = append(line, l)
	}
	return line
}

// denierOf returns the agent whose definition denies a tool to an agent by name: itself, or one above it; "": none
// does.
func (l *agentLog) denierOf(tool string) string {
	for _, above := range l.run.lineOf(l.log) {
		for _, d := range l.run.super().opened[0].Definitions {
			if above.task != nil && d.Name == above.task.Task.Name && slices.Contains(d.Deny, tool) {
				return above.at.Agent()
			}
		}
	}
	return ""
}

// removedBefore returns the entry of the run's log before another one by which a tool was removed from an agent, or
// from one above it; 0: none has. A tool that is added later is that agent's alone: its children do not get it back.
func (v *verifier) removedBefore(l *log, tool string, before uint64) uint64 {
	for _, above := range v.lineOf(l) {
		for _, c := range above.contexts {
			if c.cause > 0 && c.cause < before && slices.Contains(c.body.Without, tool) {
				return c.cause
			}
		}
	}
	return 0
}

// checkChildContext checks that an agent begins without the tools that were removed from an agent above it, and with
// the layers that its parent passes on.
func checkChildContext(v *verifier, l, parent *log) {
	for _, t := range l.task.Task.Tools {
		if removed := v.removedBefore(parent, t.Name, l.taskCause); removed > 0 {
			l.addFinding(Rights, l.taskAt, "the agent is offered %s, which entry %d of %s has removed from an agent above it",
				t.Name, removed, v.super().at)
		}
	}
	if parent.last[v.super().at].n < l.taskCause {
		return // the parent's log was read before the agent began
	}
	for _, layer := range parent.passedLayers(l.taskCause) {
		if !slices.Contains(l.task.Task.Layers, layer) {
			l.addFinding(Rights, l.taskAt, "the layer %q, which %s passes on, is not in the task of the agent", layer.Name,
				parent.at.Agent())
		}
	}
}

// Limits of the layers of an agent. An agent below another one keeps those that it has, if it would have more.
const (
	layersMax      = 32
	layersBytesMax = 32 << 10
)

// passedLayers returns the layers that an agent passes on before an entry of the run's log.
func (l *log) passedLayers(before uint64) (passed []layerBody) {
	layers := slices.Clone(l.task.Task.Layers)
	for _, c := range l.contexts {
		if c.cause == 0 || c.cause >= before {
			continue
		}
		for _, set := range c.body.Layers {
			layers = slices.DeleteFunc(layers, func(o layerBody) bool { return o.Name == set.Name && o.Agent == set.Agent })
			if set.Text != "" {
				layers = append(layers, set)
			}
		}
		size := 0
		for _, layer := range layers {
			size += len(layer.Text)
		}
		if len(layers) > layersMax || size > layersBytesMax {
			return nil // which of them it has is not known
		}
	}
	return slices.DeleteFunc(layers, func(o layerBody) bool { return !o.Below })
}
