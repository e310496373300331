package supervisor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/promptlayer"
	"github.com/troupe-run/troupe/model"
)

// ContextSet changes the system prompt and the tools of a live agent, from its next request on. Layers that say so,
// and the removal of tools, apply to the agents below it, too: to those that live, and to those that begin later.
type ContextSet struct {
	Agent spec.ID `msgpack:"a,omitempty"` // "": the agent that has the conversation of the run
	// Layers need no agent and no owner: they are Agent's, and By's if they name none.
	Layers []spec.Layer `msgpack:"l,omitempty"`
	// AddTools are offered to Agent alone. Agents below it cannot have them: rights are never passed on after the start.
	AddTools    []model.ToolSpec  `msgpack:"t,omitempty"`
	RemoveTools []string          `msgpack:"w,omitempty"`
	Hashes      map[string]string `msgpack:"x,omitempty"` // versions of AddTools
	By          string            `msgpack:"b,omitempty"`
}

// Kind is the fact's word in logs.
func (ContextSet) Kind() string { return "context_set" }

// handleContextSet passes a change on to the agent and to those below it. A change that cannot be made is a warning: the
// client that asked for it was answered when its request was in the log.
func handleContextSet(s State, f ContextSet) (State, []Effect) {
	m, why := contextTarget(s, f)
	if why != "" {
		return warnContext(s, f, why), nil
	}
	own := f.layersOf(m)
	below := passedOn(m.layers, own)
	m.layers = promptlayer.Apply(m.layers, below)
	for _, t := range f.AddTools {
		m.added = append(slices.Clip(m.added), t.Name)
	}
	s = s.put(withoutRights(m, f.RemoveTools))
	change := agent.ContextSet{Layers: own, AddTools: f.AddTools, RemoveTools: f.RemoveTools, Hashes: f.Hashes, By: f.By}
	change.Commands, change.Servers = s.Run.providersOf(f.AddTools)
	s, fx := passContext(s, m, agent.ContextSet{Layers: below, RemoveTools: f.RemoveTools, By: f.By}) //mutant:layers-stay-above
	return s, append([]Effect{Tell{To: m.ID, Fact: change}}, fx...)
}

// passContext passes a change on to the agents below a member. An agent whose layers would be too
// many keeps those that it has.
func passContext(s State, m Member, passed agent.ContextSet) (State, []Effect) {
	if len(passed.Layers) == 0 && len(passed.RemoveTools) == 0 {
		return s, nil
	}
	var below []Member
	s.roster.eachBelow(m.ID, func(c Member) { below = append(below, c) })
	var fx []Effect
	for _, c := range below {
		fact := passed
		if layers := promptlayer.Apply(c.layers, passed.Layers); promptlayer.Check(layers) == nil {
			c.layers = layers
		} else {
			fact.Layers = nil
		}
		s = s.put(withoutRights(c, passed.RemoveTools)) //mutant:removed-tool-stays-below
		if !c.Done && len(fact.Layers)+len(fact.RemoveTools) > 0 {
			fx = append(fx, Tell{To: c.ID, Fact: fact})
		}
	}
	return s, fx
}

func warnContext(s State, f ContextSet, why string) State {
	return s.publishEvent(event.KindWarningRaised, event.Warning{What: "the context of " + cmp.Or(string(f.Agent), "the run") + " was not changed", Why: why, Live: s.Live})
}

// layersOf are the layers of the change as the member has them.
func (f ContextSet) layersOf(m Member) []spec.Layer {
	own := slices.Clone(f.Layers)
	for i := range own {
		own[i].Agent, own[i].Owner = m.ID, cmp.Or(own[i].Owner, f.By)
	}
	return own
}

// CheckContext says why a change cannot be made; "": it can.
func CheckContext(s State, f ContextSet) (why string) {
	_, why = contextTarget(s, f)
	return why
}

// contextTarget returns the agent of a change, and why the change cannot be made; "": it can.
func contextTarget(s State, f ContextSet) (m Member, why string) {
	m, ok := s.Member(cmp.Or(f.Agent, spec.Root))
	if f.Agent == "" {
		m = s.roster.holder(m)
	}
	switch {
	case !ok:
		return m, fmt.Sprintf("there is no agent %.64q", cmp.Or(f.Agent, spec.Root))
	case s.Cancel != nil || s.Phase != Live || m.Done || m.Stopping:
		return m, whyEnding(s, m)
	}
	for _, l := range f.Layers {
		if err := promptlayer.Validate(l); err != nil {
			return m, err.Error()
		}
	}
	if err := promptlayer.Check(promptlayer.Apply(m.layers, f.layersOf(m))); err != nil {
		return m, err.Error()
	}
	for _, name := range f.RemoveTools {
		known := func(t model.ToolSpec) bool { return t.Name == name }
		switch {
		case slices.ContainsFunc(f.AddTools, known):
			return m, fmt.Sprintf("%.80q is added and removed at once", name)
		case !slices.ContainsFunc(s.Run.Tools, known) && !slices.Contains(m.added, name):
			return m, fmt.Sprintf("%.80q is not a tool of %s (%s)", name, m.ID, m.Name)
		}
	}
	for _, t := range f.AddTools {
		if why := whyNotAdded(s, m, t.Name); why != "" { //mutant:tool-beyond-the-parent
			return m, why
		}
	}
	return m, ""
}

// whyNotAdded says why a tool cannot be added to an agent; "" if it can. An agent may have only what its parent may.
func whyNotAdded(s State, m Member, tool string) string {
	if slices.Contains(m.Deny, tool) {
		return fmt.Sprintf("%s is denied to %s (%s)", tool, m.ID, m.Name)
	}
	if parent, ok := s.Member(m.Parent); ok && m.ID != spec.Root && !slices.Contains(parent.Rights, tool) {
		return fmt.Sprintf("%s (%s), the parent of %s, may not use %s", parent.ID, parent.Name, m.ID, tool)
	}
	return ""
}

// withoutRights returns a member that has lost the rights to tools: its later children cannot have them.
func withoutRights(m Member, tools []string) Member {
	gone := func(name string) bool { return slices.Contains(tools, name) }
	m.Rights, m.added = slices.DeleteFunc(slices.Clone(m.Rights), gone), slices.DeleteFunc(slices.Clone(m.added), gone)
	return m
}

// PassesOn reports whether the agents below a member inherit its layer of a name.
func PassesOn(m Member, layer string) bool {
	return slices.ContainsFunc(m.layers, func(l spec.Layer) bool { return l.Name == layer && l.Agent == m.ID && l.Below })
}

// passedOn are the changes of layers that agents below inherit. What they no longer inherit is removed.
func passedOn(before, changes []spec.Layer) (list []spec.Layer) {
	for _, l := range changes {
		was := slices.ContainsFunc(before, func(o spec.Layer) bool { return o.Name == l.Name && o.Agent == l.Agent && o.Below })
		switch {
		case l.Below:
			list = append(list, l)
		case was:
			list = append(list, spec.Layer{Name: l.Name, Agent: l.Agent, Owner: l.Owner, Below: true})
		}
	}
	return list
}
