package supervisor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// ContextSet changes the system prompt and the tools of a live agent, from its next request on. Layers that say so, and the
// removal of tools, apply to the agents below it, too: to those that live, and to those that begin later.
type ContextSet struct {
	Agent spec.ID `msgpack:"a,omitempty"` // "": the agent that has the conversation of the run
	// Layers need no agent and no owner: they are Agent's, and By's if they name none.
	Layers []spec.Layer `msgpack:"l,omitempty"`
	// Tools are offered to Agent alone. Agents below it cannot have them, so rights are never passed on after the start.
	Tools   []model.ToolSpec  `msgpack:"t,omitempty"`
	Without []string          `msgpack:"w,omitempty"`
	Hashes  map[string]string `msgpack:"x,omitempty"` // versions of Tools
	By      string            `msgpack:"b,omitempty"`
}

// Kind is the fact's word in logs.
func (ContextSet) Kind() string { return "context_set" }

// applyContext passes a change on to the agent and to those below it. A change that cannot be made is a warning: the client that
// asked for it was answered when its request was in the log.
func applyContext(s State, f ContextSet) (State, []Effect) {
	m, why := contextTarget(s, f)
	if why != "" {
		return s.publishEvent(event.KindWarningRaised, event.Warning{What: "the context of " + cmp.Or(string(f.Agent), "the run") + " was not changed", Why: why, Live: s.Live}), nil
	}
	own := slices.Clone(f.Layers)
	for i := range own {
		own[i].Agent, own[i].Owner = m.ID, cmp.Or(own[i].Owner, f.By)
	}
	inherited := passedOn(m.layers, own)
	m.layers = spec.WithLayers(m.layers, own)
	s = s.put(withoutRights(m, f.Without))
	change := agent.ContextSet{Layers: own, Tools: f.Tools, Without: f.Without, Hashes: f.Hashes, By: f.By}
	change.Commands, change.Servers = s.Run.providersOf(f.Tools)
	fx := []Effect{Tell{To: m.ID, Fact: change}}
	passed := agent.ContextSet{Layers: inherited, Without: f.Without, By: f.By} //mutant:layers-stay-above
	if len(passed.Layers) == 0 && len(passed.Without) == 0 {
		return s, fx
	}
	var below []Member
	s.members.eachBelow(m.ID, func(c Member) { below = append(below, c) })
	for _, c := range below {
		layers := spec.WithLayers(c.layers, passed.Layers)
		if spec.CheckLayers(layers) != nil { // it keeps those that it has
			layers = c.layers
		}
		c.layers = layers
		s = s.put(withoutRights(c, f.Without)) //mutant:removed-tool-stays-below
		if !c.Done {
			fx = append(fx, Tell{To: c.ID, Fact: passed})
		}
	}
	return s, fx
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
		m = s.members.holder(m)
	}
	switch {
	case !ok:
		return m, fmt.Sprintf("there is no agent %.64q", f.Agent)
	case s.Cancel != nil || s.Phase != Live || m.Done || m.Stopping:
		return m, whyEnding(s, m)
	}
	for _, l := range f.Layers {
		if err := l.Validate(); err != nil {
			return m, err.Error()
		}
	}
	if err := spec.CheckLayers(spec.WithLayers(m.layers, f.Layers)); err != nil {
		return m, err.Error()
	}
	for _, t := range f.Tools {
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
	m.Rights = slices.DeleteFunc(slices.Clone(m.Rights), func(name string) bool { return slices.Contains(tools, name) })
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
