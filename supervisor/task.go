package supervisor

import (
	"cmp"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// Opened builds the task of an agent from the configuration of the run.

// findDefinition finds a definition of the run by its name.
func (o Opened) findDefinition(name string) (Definition, bool) {
	i := slices.IndexFunc(o.Definitions, func(d Definition) bool { return d.Name == name })
	if i < 0 {
		return Definition{}, false
	}
	return o.Definitions[i], true
}

// newTask builds the task of a member. Its limits are the tighter of the run's and
// the definition's.
func (o Opened) newTask(m Member, def Definition, goal string) spec.Task {
	t := spec.Task{
		Run: o.Run, ID: m.ID, Parent: m.Parent, Depth: m.Depth, Name: def.Name, Goal: goal,
		System: def.System, Model: o.Model, Caller: o.Caller, Priority: o.Priority, Constraints: slices.Concat(o.Constraints, def.Constraints),
		Criteria: slices.Concat(o.Criteria, def.Criteria), FailIf: slices.Concat(o.FailIf, def.FailIf), Trace: o.Trace, Workspace: o.Workspace, Writable: o.Writable,
		Limits: tighterLimits(def.Limits, o.Agent), LoopOptions: o.mergeLoopOptions(m.Depth, def), Memory: def.Memory, Source: def.Source, Hashes: o.configVersions(def), Media: o.mediaAt(m.Depth),
	}
	t.LoopOptions.Unattended = t.LoopOptions.Unattended || m.unattended
	t.Private, t.Tainted = readsPrivateData(o), cmp.Or(o.Tainted, def.Tainted)
	if def.Model != nil {
		t.Model = *def.Model
	}
	if def.Foreign { // it follows a rule: what helps models, another program would be told
		options := &t.LoopOptions
		options.LimitNotes, options.Journal, options.Obstacles, options.DeclareFailure, options.Fallbacks = spec.LimitNotes{}, false, false, false, nil
	}
	if m.NodePool != o.PoolFor(Definition{}) { // its pool does not have the directory, nor the notes
		t.Workspace, t.Memory = "", ""
	}
	if m.ID == spec.Root && o.Past != nil && o.Past.Conversation != "" {
		t.Past = o.Past
	}
	if m.Depth == 0 { // an agent that takes over from the root, too
		t.Limits = tighterLimits(t.Limits, spec.Limits{Turns: o.RootTurns})
	}
	if t.Limits.Children == 0 {
		t.Limits.Children = o.Limits.Children
	}
	t.Forbidden = o.forbiddenTools(m)
	delegates, foreign, handoffs := o.delegatesOf(def), o.foreignDelegates(def), o.handoffsOf(def)
	if m.Depth+1 >= o.Limits.Depth { //mutant:leaf-by-depth
		delegates = nil
	}
	for _, toolSpec := range o.Tools {
		offered := def.Offer == nil || slices.Contains(def.Offer, toolSpec.Name)
		leaf := toolSpec.Name == delegateTool && len(delegates)+len(foreign) == 0 || toolSpec.Name == handoffTool && len(handoffs) == 0
		if offered && !leaf && slices.Contains(m.Rights, toolSpec.Name) {
			switch toolSpec.Name {
			case askTool:
				toolSpec = describeQuestions(toolSpec, t.LoopOptions.Unattended)
			case delegateTool:
				toolSpec, t.Foreign, t.ForeignMembers = describeDelegates(toolSpec, delegates, foreign), foreign, foreignMembers(delegates)
				t.ChargeNano = def.ChargeNano
			case handoffTool:
				toolSpec = describeHandoffs(toolSpec, handoffs)
			}
			t.Tools = append(t.Tools, toolSpec)
		}
	}
	t.Commands, t.Servers = o.providersOf(t.Tools)
	return t
}

// askTool is the tool by which a model asks a person.
const askTool = toolname.AskHuman

// describeQuestions tells an unattended agent how a question ends.
func describeQuestions(ask model.ToolSpec, unattended bool) model.ToolSpec {
	if unattended {
		ask.Description = "Say what only a person can decide or know, without which you cannot go on. Nobody can be asked in this run: the call ends your work, and your question is its result."
	}
	return ask
}

// providersOf are the commands and servers of the run that run some of the tools.
func (o Opened) providersOf(tools []model.ToolSpec) (commands []spec.Command, servers []spec.Server) {
	for _, c := range o.Commands {
		if slices.ContainsFunc(tools, func(t model.ToolSpec) bool { return t.Name == c.Name }) {
			commands = append(commands, c)
		}
	}
	for _, server := range o.Servers {
		if slices.ContainsFunc(tools, func(t model.ToolSpec) bool { return server.Has(t.Name) }) {
			servers = append(servers, server)
		}
	}
	return commands, servers
}

// OfferedTools names the tools that a member is offered.
func (o Opened) OfferedTools(m Member) (names []string) {
	def, ok := o.findDefinition(m.Name)
	if !ok {
		return nil
	}
	for _, t := range o.newTask(m, def, "").Tools {
		names = append(names, t.Name)
	}
	return names
}

// mediaAt returns the media that come with the task of an agent: only the root's has any.
func (o Opened) mediaAt(depth int) []model.Media {
	if depth > 0 {
		return nil
	}
	return o.Media
}

// pastBound is an upper bound of the tokens of a history; nil: there is none.
func pastBound(p *spec.HistoryOrigin) int64 {
	if p == nil {
		return 0
	}
	return p.Bound
}

// tighterLimits is the smaller of two limits wherever both are set.
func tighterLimits(a, b spec.Limits) spec.Limits {
	least := func(x, y int) int {
		if x == 0 || y != 0 && y < x {
			return y
		}
		return x
	}
	least64 := func(x, y int64) int64 {
		if x == 0 || y != 0 && y < x {
			return y
		}
		return x
	}
	return spec.Limits{
		Turns: least(a.Turns, b.Turns), Calls: least(a.Calls, b.Calls), ReplyCalls: least(a.ReplyCalls, b.ReplyCalls),
		Parallel: least(a.Parallel, b.Parallel), Children: least(a.Children, b.Children),
		Malformed: least(a.Malformed, b.Malformed), Cuts: least(a.Cuts, b.Cuts), Retries: least(a.Retries, b.Retries), Vetoes: least(a.Vetoes, b.Vetoes),
		Handoffs: least(a.Handoffs, b.Handoffs),
		Output:   least64(a.Output, b.Output), Closing: least64(a.Closing, b.Closing), SoftMS: least64(a.SoftMS, b.SoftMS),
		HardMS: least64(a.HardMS, b.HardMS), Tokens: least64(a.Tokens, b.Tokens), Nano: least64(a.Nano, b.Nano),
	}
}

// withinParentTime returns the limits of a child, whose time is part of the time that its parent has left.
func withinParentTime(l spec.Limits, f agent.Delegate) spec.Limits {
	if f.SoftMS > 0 && f.HardMS > 0 {
		l.SoftMS = min(cmp.Or(l.SoftMS, spec.SoftDefaultMS), f.SoftMS)
		l.HardMS = min(cmp.Or(l.HardMS, spec.HardDefaultMS), f.HardMS)
	}
	return l
}
