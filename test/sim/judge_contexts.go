package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// layerKey names a layer: what was set for one agent is no layer of another.
type layerKey struct {
	agent spec.ID
	name  string
}

// contextJudge checks that the requests of an agent have the layers that were set for it, from the first reservation
// on that was granted afterwards. Each change in the simulator has a text of its own.
type contextJudge struct {
	*watchedAgent
	layers      map[layerKey]string // as its log sets them
	seen        map[string]bool     // all texts
	reservation int
	sent        map[layerKey]string // with the request under that reservation
}

// noteFact reads which layers the agent has.
func (j *contextJudge) noteFact(before, after *agent.State, f activation.Fact) {
	defer j.noteBegun(after)
	switch {
	case f.Kind == (agent.Submitted{}).Kind() && before.Phase == "":
		j.apply(decodeFact[agent.Submitted](j.population, f).Task.Layers)
	case f.Kind == (agent.ContextSet{}).Kind() && before.Phase != agent.Done:
		j.reach.hit(placeContextSet)
		if before.Phase == agent.Reserving || before.Phase == agent.Thinking {
			j.reach.hit(placeContextSetOverARequest)
		}
		j.apply(decodeFact[agent.ContextSet](j.population, f).Layers)
	}
}

// noteBegun notes which layers the agent had when its attempt began. A later activation may send the request.
func (j *contextJudge) noteBegun(after *agent.State) {
	if after.Phase == agent.Thinking && after.Reservation != j.reservation {
		j.reservation, j.sent = after.Reservation, maps.Clone(j.layers)
	}
}

func (j *contextJudge) apply(layers []spec.Layer) {
	if j.layers == nil {
		j.layers, j.seen = map[layerKey]string{}, map[string]bool{}
	}
	for _, l := range layers {
		key := layerKey{l.Agent, l.Name}
		if l.Text == "" {
			delete(j.layers, key)
			continue
		}
		j.layers[key], j.seen[l.Text] = l.Text, true
	}
}

// checkRequest checks the system prompt of a request. A request that is sent again under its reservation stays as it
// was, and so does a closing turn. Hooks may compute the prompt of a turn from what it was before.
func (j *contextJudge) checkRequest(after *agent.State, e agent.CallModel) {
	if after.Purpose != agent.ForTurn || after.ClosingReason != "" || len(j.seen) == 0 || len(hooksAt(after, spec.HookContext, "")) > 0 {
		return
	}
	want := map[string]bool{}
	for _, text := range j.sent {
		want[text] = true
	}
	prompt := e.Request.System + "\n" + e.Request.Dynamic
	for text := range j.seen {
		if strings.Contains(prompt, text) != want[text] {
			j.fail(contextAsSet, "%s is sent the system prompt %q, and its log has set the layers %v", j.actor.id, prompt, j.sent)
			return
		}
	}
}

// runContextJudge checks that layers and removed tools reach the agents below, those that live and those that begin
// later, and that no agent is given a tool that its parent may not use.
type runContextJudge struct {
	population *population
	layers     map[layerKey]string // that agents below inherit
	removed    map[spec.ID][]string
}

func newRunContextJudge(p *population) *runContextJudge {
	return &runContextJudge{p, map[layerKey]string{}, map[spec.ID][]string{}}
}

// noteFact reads a change, and checks which agents get it.
func (j *runContextJudge) noteFact(before *supervisor.State, f activation.Fact, out activation.Stepped) {
	if f.Kind != (supervisor.ContextSet{}).Kind() || before.Phase != supervisor.Live || before.Cancel != nil {
		return
	}
	set := decodeFact[supervisor.ContextSet](j.population, f)
	m, ok := before.Member(set.Agent)
	if !ok || m.Done || m.Stopping || slices.ContainsFunc(set.AddTools, func(t model.ToolSpec) bool { return mayNotAdd(before, m, t.Name) }) {
		j.checkNobodyTold(out)
		return
	}
	inherited := false
	for _, l := range set.Layers {
		key := layerKey{m.ID, l.Name}
		_, was := j.layers[key]
		inherited = inherited || l.Below || was
		if delete(j.layers, key); l.Below && l.Text != "" {
			j.layers[key] = l.Text
		}
	}
	j.removed[m.ID] = append(j.removed[m.ID], set.RemoveTools...)
	told := map[spec.ID]bool{}
	for _, t := range out.Messages {
		if t.Kind == (agent.ContextSet{}).Kind() {
			told[spec.ID(t.To.Agent())] = true
		}
	}
	before.Members(func(c supervisor.Member) {
		below := slices.Contains(c.ID.Above(), m.ID) && (inherited || len(set.RemoveTools) > 0)
		if want := !c.Done && (c.ID == m.ID || below); want != told[c.ID] {
			j.population.fail(contextAsSet, "a change of the context of %s: %s is told %v", m.ID, c.ID, told[c.ID])
		}
	})
	if len(told) > 1 {
		j.population.reach.hit(placeContextPassedOn)
	}
}

func (j *runContextJudge) checkNobodyTold(out activation.Stepped) {
	if slices.ContainsFunc(out.Messages, func(t activation.OutboxMessage) bool { return t.Kind == (agent.ContextSet{}).Kind() }) {
		j.population.fail(contextAsSet, "a change of a context that cannot be made is passed on")
	}
	j.population.reach.hit(placeContextRefused)
}

// mayNotAdd reports whether the agent may not have a tool.
func mayNotAdd(s *supervisor.State, m supervisor.Member, tool string) bool {
	parent, ok := s.Member(m.Parent)
	return slices.Contains(m.Deny, tool) || ok && m.ID != spec.Root && !slices.Contains(parent.Rights, tool)
}

// checkTask checks what an agent that begins inherits.
func (j *runContextJudge) checkTask(t activation.OutboxMessage) {
	if len(j.layers)+len(j.removed) == 0 || j.population.super.damaged {
		return
	}
	task := decodeFact[agent.Submitted](j.population, activation.Fact{Kind: t.Kind, Body: t.Body}).Task
	has := map[layerKey]string{}
	for _, l := range task.Layers {
		has[layerKey{l.Agent, l.Name}] = l.Text
	}
	for _, above := range task.ID.Above() {
		for key, text := range j.layers {
			if key.agent == above && has[key] != text {
				j.population.fail(contextAsSet, "%s begins without the layer %s of %s", task.ID, key.name, above)
			}
		}
		for _, tool := range task.Tools {
			if slices.Contains(j.removed[above], tool.Name) {
				j.population.fail(contextAsSet, "%s begins with %s, which was taken from %s", task.ID, tool.Name, above)
			}
		}
	}
	if len(has) > 0 {
		j.population.reach.hit(placeBegunWithLayers)
	}
}
