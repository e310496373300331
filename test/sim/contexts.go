package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	contextsEvery = 6 // which of the seeds change the prompts and tools of live agents: see modelsEvery
	contextsAt    = 4
	contextSteps  = 23 // between two changes
)

// changeContext changes the system prompt, or the tools, of an agent: in its own log, or by the
// supervisor, which passes it on.
func (in *injector) changeContext() {
	super := in.population.super
	st := super.shadow.super.State
	if st.Phase != supervisor.Live || super.damaged {
		return
	}
	var ids []spec.ID
	st.Members(func(m supervisor.Member) {
		if !m.Done || in.percent(5) {
			ids = append(ids, m.ID)
		}
	})
	if len(ids) == 0 {
		return
	}
	id := ids[in.IntN(len(ids))]
	in.contexts++
	text := "layer-" + itoa(in.contexts) + "."
	if in.percent(25) {
		text = ""
	}
	layer := spec.Layer{Name: oneOf(in.dice, "tone", "style"), Text: text, Priority: oneOf(in.dice, 0, 20, 200), Agent: id}
	if to := in.population.byAddr[mailbox.At(runName, string(id))]; in.percent(50) {
		if to == nil || to.shadow.agent == nil || to.shadow.agent.State.Phase == "" {
			return // its task is on the way
		}
		own := agent.ContextSet{Layers: []spec.Layer{layer}, By: "user"}
		in.store.appendCommand(to, own.Kind(), own)
		return
	}
	layer.Name = oneOf(in.dice, "house", "rules") + "-" + itoa(len(id.Above())) // agents above have other names
	layer.Below = in.percent(80)
	f := supervisor.ContextSet{Agent: id, Layers: []spec.Layer{layer}, By: "user"}
	tools := slices.DeleteFunc(slices.Clone(st.Run.Tools), func(t model.ToolSpec) bool { return slices.Contains(toolset.LoopTools, t.Name) })
	if tool := tools[in.IntN(len(tools))]; in.percent(15) {
		f.RemoveTools = []string{tool.Name}
	} else if in.percent(15) {
		f.AddTools = append(f.AddTools, tool)
	}
	in.store.appendCommand(super, f.Kind(), f)
}
