package eval

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// openedEntry is the first entry of the case's run.
func (c *Case) openedEntry() supervisor.Opened {
	if c.opened != nil {
		return *c.opened
	}
	o := supervisor.Opened{Run: runName, Goal: c.Goal, Root: c.Agents[0].Name, Caller: "eval",
		Model:       spec.Model{Name: routeName, Window: c.Window, Price: c.Price.budgetPrice()},
		Limits:      spec.RunLimits{Tokens: c.Limits.Tokens, Nano: int64(c.Limits.USD * budget.NanoPerUSD), Calls: c.Limits.ToolCalls, Depth: c.Limits.Depth, Children: c.Limits.Children, Agents: c.Limits.Agents},
		Agent:       c.Limits.agentLimits(),
		LoopOptions: c.loopOptions, Policy: c.policy, RootTurns: c.Limits.Turns,
	}
	if o.Model.Window == 0 {
		o.Model.Window = windowSize
	}
	if o.Limits.Tokens == 0 {
		o.Limits.Tokens = tokensMax
	}
	for i, a := range c.Agents {
		d := supervisor.Definition{Name: a.Name, Description: a.Description, System: a.System,
			Tools: a.Allowed, Deny: a.Denied, Delegates: a.Delegates, Handoffs: a.Handoffs, Limits: a.Limits.agentLimits(), LoopOptions: a.loopOptions}
		d.Limits.Turns = a.Limits.Turns
		if i == 0 {
			d.Deny = slices.Concat(d.Deny, c.Denied)
			if c.Allowed != nil {
				d.Tools = c.Allowed
			}
		}
		if a.Model != "" {
			m := o.Model
			m.Name = a.Model
			d.Model = &m
		}
		o.Definitions = append(o.Definitions, d)
	}
	o.Tools = c.toolSpecs()
	return o
}

func (p Price) budgetPrice() budget.Price {
	if p == (Price{}) {
		return budget.Price{}
	}
	const nanoPerToken = 1000 // a dollar for a million tokens
	return budget.Price{Known: true, Input: int64(p.Input * nanoPerToken), Output: int64(p.Output * nanoPerToken)}
}

func (l Limits) agentLimits() spec.Limits {
	return spec.Limits{ReplyCalls: l.ReplyCalls, Parallel: l.Parallel, Malformed: l.Malformed, Cuts: l.Cuts,
		Retries: l.Retries, Output: l.Output, Closing: l.Closing, SoftMS: durationMS(l.Soft), HardMS: durationMS(l.Hard)}
}

// toolSpecs returns the tools of the run: the mocked ones, and those that the loop serves.
func (c *Case) toolSpecs() []model.ToolSpec {
	var list []model.ToolSpec
	for _, name := range c.toolNames() {
		if toolSpec, ok := servedTools()[name]; ok {
			list = append(list, toolSpec)
			continue
		}
		list = append(list, c.mockSpec(name))
	}
	return list
}

// toolNames returns the sorted names of the run's tools. A case with several agents
// includes delegation.
func (c *Case) toolNames() []string {
	names := map[string]bool{}
	for name := range c.MockedTools {
		names[name] = true
	}
	for name := range c.Tools {
		names[name] = true
	}
	if len(c.Agents) > 1 {
		names[toolname.Delegate] = true
	}
	if slices.ContainsFunc(c.Agents, func(a Agent) bool { return len(a.Handoffs) > 0 }) {
		names[toolname.Handoff] = true
	}
	return slices.Sorted(maps.Keys(names))
}

const anyObject = `{"type":"object"}`

func (c *Case) mockSpec(name string) model.ToolSpec {
	t := c.Tools[name]
	toolSpec := model.ToolSpec{Name: name, Description: t.Description, Schema: t.schema, Class: t.Class, Poll: t.Poll}
	if toolSpec.Description == "" {
		toolSpec.Description = fmt.Sprintf("A mocked tool: %s.", name)
	}
	if toolSpec.Schema == "" {
		toolSpec.Schema = anyObject
	}
	if toolSpec.Class == "" {
		toolSpec.Class = model.Read
	}
	return toolSpec
}

// servedTools are the tools that need no mock, by name: the loop or the supervisor
// serves them.
var servedTools = sync.OnceValue(func() map[string]model.ToolSpec {
	all := map[string]model.ToolSpec{}
	for _, toolSpec := range append(slices.Concat(agent.JournalTools(), agent.BacklogTools()), agent.AskSpec(), agent.DeclareSpec(), agent.SendSpec(), agent.DelegateSpec("", true), agent.HandoffSpec()) {
		all[toolSpec.Name] = toolSpec
	}
	return all
})
