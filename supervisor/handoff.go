package supervisor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// A handoff begins another member in the place of its caller: at the same depth, with what the caller's task still
// requires, and with an answer that is the caller's.

const handoffTool = toolname.Handoff

// handoffsOf lists the definitions to which an agent may hand off its conversation.
func (o Opened) handoffsOf(own Definition) []Definition {
	var list []Definition
	for _, d := range o.Definitions {
		if slices.Contains(own.Handoffs, d.Name) {
			list = append(list, d)
		}
	}
	return list
}

// describeHandoffs completes the tool handoff for one agent: its schema accepts exactly the agents that there are.
func describeHandoffs(t model.ToolSpec, list []Definition) model.ToolSpec {
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.Name
	}
	enum, err := json.Marshal(names)
	if err != nil {
		panic("supervisor: names of agents do not encode: " + err.Error())
	}
	t.Schema = strings.Replace(t.Schema, `"agent":{"type":"string"}`, `"agent":{"type":"string","enum":`+string(enum)+`}`, 1)
	return describeDelegates(t, list, nil)
}

// whyNotHandedOff says why a member may not hand off its conversation to an agent; "" if it may.
func whyNotHandedOff(o Opened, m Member, own Definition, f agent.Delegate) string {
	list := o.handoffsOf(own)
	most := tighterLimits(own.Limits, o.Agent).HandoffsInAll()
	switch {
	case !slices.Contains(m.Rights, handoffTool):
		return "this agent may not hand off"
	case !slices.ContainsFunc(list, func(d Definition) bool { return d.Name == f.Name }):
		names := make([]string, len(list))
		for i, d := range list {
			names[i] = d.Name
		}
		return fmt.Sprintf("there is no agent %q for you; the agents are: %s", f.Name, strings.Join(names, ", "))
	case m.Handoffs >= most: //mutant:handoffs-unlimited
		return fmt.Sprintf("a conversation may be handed off %d times in a run (max_handoffs); answer yourself", most)
	}
	return ""
}

// handedTask gives the agent that takes over the remaining requirements of its caller's task, in addition to those of
// its own definition. The goal names the caller.
func handedTask(t spec.Task, m, caller Member, def Definition, f agent.Delegate) (handed spec.Task, why string) {
	own := def.LoopOptions.Require
	if own.Schema != "" && f.Require.Schema != "" && own.Schema != f.Require.Schema {
		return t, fmt.Sprintf("%s answers by a schema of its own, and this task has another", m.Name)
	}
	for _, e := range f.Require.Evidence {
		if !slices.Contains(m.Rights, e.Tool) {
			return t, fmt.Sprintf("the task requires a result of %s, and %s may not use it: call it first", e.Tool, m.Name)
		}
	}
	require := f.Require
	for _, e := range own.Evidence {
		if !slices.Contains(require.Evidence, e) {
			require.Evidence = append(slices.Clip(require.Evidence), e)
		}
	}
	if require.Schema == "" {
		require.Schema = own.Schema
	}
	if require.Tries == 0 {
		require.Tries = own.Tries
	}
	t.LoopOptions.Require = require
	t.Goal = fmt.Sprintf("[%s has handed off this conversation to you. What was said is above. You answer from here on, and %s does nothing more.]\n\n%s",
		caller.Name, caller.Name, f.Goal)
	return t, ""
}

// handedHooks are the hooks of an agent that bind the agent that answers in its place: those that bind any child, and
// those that judge the answer.
func handedHooks(hooks []spec.Hook) []spec.Hook {
	var list []spec.Hook
	for _, h := range hooks {
		if h.Point == spec.HookStop || slices.Contains(bindingPoints, h.Point) {
			list = append(list, h)
		}
	}
	return list
}

// handleForwarded passes a message of a person or an agent on to the agent that has the conversation of the sender.
func handleForwarded(s State, from spec.ID, f agent.Fact) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok || m.HandedTo == "" {
		return s, nil
	}
	to, ok := s.Member(m.HandedTo)
	if !ok || to.Done {
		return s.publishEvent(event.KindWarningRaised, event.Warning{What: "a message to " + string(from) + " was not read",
			Why: fmt.Sprintf("%s (%s), which had the conversation, had ended", m.HandedTo, to.Name), Live: s.Live}), nil
	}
	return s, []Effect{Tell{To: to.ID, Fact: f}}
}

// HolderOf returns the member that has the conversation of a member: itself, or the one it was handed off to.
func HolderOf(s State, m Member) Member { return s.roster.holder(m) }

// holder is the member that has the conversation of a member: itself, or the one it was handed off to.
func (r roster) holder(m Member) Member {
	for m.HandedTo != "" {
		next, ok := r.Member(m.HandedTo)
		if !ok {
			return m
		}
		m = next
	}
	return m
}

// beginner is the member that began the conversation of a member: its parent and siblings are those of the holder, too.
func (r roster) beginner(m Member) Member {
	for m.Handoffs > 0 {
		caller, ok := r.Member(m.Parent)
		if !ok {
			return m
		}
		m = caller
	}
	return m
}

// callersOf names the members in whose place a member answers, by id and definition.
func (r roster) callersOf(m Member) (names []string) {
	for m.Handoffs > 0 {
		caller, ok := r.Member(m.Parent)
		if !ok {
			break
		}
		names = append(names, string(caller.ID), caller.Name)
		m = caller
	}
	return names
}

// handedTo is the agent that has the conversation of the run; nil: the root has it.
func (r roster) handedTo() *event.ConversationHolder {
	root, ok := r.Member(spec.Root)
	if !ok || root.HandedTo == "" {
		return nil
	}
	h := r.holder(root)
	return &event.ConversationHolder{Agent: h.ID, Name: h.Name}
}
