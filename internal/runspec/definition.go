package runspec

import (
	"maps"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/agentmemory"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/loopoptions"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/toolset/command"
	"github.com/troupe-run/troupe/internal/toolset/readresult"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// registerAgent adds one agent and its commands. It replaces an agent of the same name.
func (r *agentResolver) registerAgent(t agentSet, d agentfile.Definition) (agentSet, error) {
	def := supervisor.Definition{Name: d.Name, Description: d.Description, System: d.Prompt, Delegates: d.Delegates, Handoffs: d.Handoffs, Source: d.Path, Hash: HashVersion(d.Prompt),
		Limits: d.Limits, Constraints: d.Constraints, Criteria: d.Criteria, FailIf: d.FailIf}
	def.Limits.Turns, def.Limits.Tokens, def.Limits.Nano = d.MaxTurns, d.Budget.Tokens, int64(d.Budget.USD*budget.NanoPerUSD)
	if ms := d.Timeout.Milliseconds(); ms > 0 {
		def.Limits.SoftMS, def.Limits.HardMS = ms, spec.HardLimitMS(ms)
	}
	t.parkMS = withParkTimeout(t.parkMS, d)
	def.Tools = ownTools(d)
	def.Deny, def.NodePool = d.DeniedTools(), d.Placement.Pool
	if d.PermissionMode == spec.ModePlan {
		def.Deny = append(def.Deny, onlyReads)
	}
	own, err := withRealPaths(d.OwnPermissions(), r.req.workspace)
	if err != nil {
		return t, err
	}
	def.Permissions = &own
	def.Limits, def.Carved = withShare(def.Limits, r.models.limits, d.Budget.Share), d.Budget.Share > 0
	if t, def.Delegates, err = coveredDelegates(r.cfg, t, r.req, max(limitInMoney(r.models), def.Limits.Nano), d); err != nil {
		return t, err
	}
	var summaries *spec.Model
	if d.Model != "" {
		choice, err := r.cfg.Routes.ChooseNamed(d.Model)
		if err != nil {
			return t, badModel(err, "change `model` in "+d.Path, "agent %s: %v", d.Name, err)
		}
		route := withRoute(r.models.model, choice, r.req.AllowUnpriced)
		def.Model, summaries = &route, summaryModel(choice)
	}
	def.Model = withOptions(def.Model, r.models.model, d)
	options, warnings, err := r.agentOptions(def, d)
	if err != nil {
		return t, err
	}
	t.warnings = append(t.warnings, warnings...)
	def.LoopOptions = options
	def.LoopOptions.Unattended = options.Unattended || own.Mode == spec.ModeDontAsk
	def.LoopOptions.Hooks, def.LoopOptions.Dynamic = namedHooks(d), ""
	if options.Context.Model == nil {
		def.LoopOptions.Context.Model = summaries
	}
	if t, def, err = r.addSkills(t, def, d); err != nil {
		return t, err
	}
	if t, def, err = addMemory(r.cfg, t, def, r.req, d); err != nil {
		return t, err
	}
	for _, c := range d.Commands {
		if t, err = addCommand(t, d.Path, c); err != nil {
			return t, err
		}
		if def.Tools != nil && !slices.Contains(def.Tools, c.Name) {
			def.Tools = append(def.Tools, c.Name)
		}
	}
	rules, err := agentRules(r.cfg.Trust, d)
	if err != nil {
		return t, err
	}
	if t.rules = maps.Clone(t.rules); t.rules == nil {
		t.rules = map[string][]supervisor.Rule{}
	}
	t.rules[d.Name] = rules
	t.definitions = slices.DeleteFunc(slices.Clone(t.definitions), func(known supervisor.Definition) bool { return known.Name == d.Name })
	t.definitions = append(t.definitions, def)
	return t, nil
}

// ownTools returns the tools that a definition grants its agent; nil grants all tools of its parent.
func ownTools(d agentfile.Definition) []string {
	names := d.GrantedTools()
	if len(names) > 0 {
		names = append(names, readresult.Name) // an agent that may see a result may see all of it
	}
	if names != nil && len(d.Handoffs) > 0 {
		names = append(names, agent.HandoffSpec().Name) // it is granted by its own key
	}
	return names
}

// agentOptions returns the loop options of an agent file that differ from the run's.
func (r *agentResolver) agentOptions(def supervisor.Definition, d agentfile.Definition) (options spec.LoopOptions, warnings []string, err error) {
	options = loopoptions.Fill(d.LoopOptions)
	for _, name := range d.Fallback {
		options.Fallbacks = append(options.Fallbacks, spec.Model{Name: name})
	}
	base := r.models.model
	if def.Model != nil {
		base = *def.Model
	}
	if options, _, err = findRoutes(r.cfg, options, base, r.req.AllowUnpriced); err != nil {
		return options, nil, badModel(err, "change "+d.Path, "agent %s: %v", d.Name, err)
	}
	options, warnings = withoutUnpriced(options, max(limitInMoney(r.models), def.Limits.Nano), d.Path+": fallback ")
	return options, warnings, nil
}

// withOptions returns the model of an agent with the options of its file: own, or else that
// of the run. nil: the agent uses the run's model without changes.
func withOptions(own *spec.Model, run spec.Model, d agentfile.Definition) *spec.Model {
	if d.Temperature == nil && d.Effort == "" {
		return own
	}
	m := run
	if own != nil {
		m = *own
	}
	if d.Temperature != nil {
		m.Temperature = d.Temperature
	}
	switch d.Effort {
	case "low", "medium", "high":
		m.Effort = d.Effort
	case "minimal", "none":
		m.Effort = "low"
	case "xhigh", "max":
		m.Effort = "high"
	}
	return &m
}

// withShare limits an agent to a share of the run's budget.
func withShare(l spec.Limits, run spec.RunLimits, part float64) spec.Limits {
	least := func(own *int64, all int64) {
		if part == 0 || all == 0 {
			return
		}
		if n := max(1, int64(part*float64(all))); *own == 0 || n < *own { // 0 would be no limit
			*own = n
		}
	}
	least(&l.Tokens, run.Tokens)
	least(&l.Nano, run.Nano)
	return l
}

// namedHooks returns the hooks of a definition, renamed so that their names show whose they
// are. Go functions keep their names, by which they are found.
func namedHooks(d agentfile.Definition) []spec.Hook {
	hooks := slices.Clone(d.Hooks)
	for i, k := range hooks {
		if k.Command != "" {
			hooks[i].Name = d.Name + "/" + k.Name
		}
	}
	return hooks
}

// addCommand adds a command tool. Two agents may share one if both define it the same.
func addCommand(t agentSet, path string, cfg command.Config) (agentSet, error) {
	if slices.Contains(toolset.LoopTools, cfg.Name) || slices.Contains(agentmemory.ToolNames(), cfg.Name) {
		return t, refuse.Bad("give it another name in "+path, "the tool %s is built in and cannot be a command", cfg.Name)
	}
	made, err := command.New(cfg)
	if err != nil {
		return t, refuse.Bad("change x-troupe.tools in "+path, "tool %s: %v", cfg.Name, err)
	}
	toolSpec, command := made.Spec(), spec.Command{Name: cfg.Name, Line: cfg.Command, TimeoutMS: cfg.Timeout.Milliseconds()}
	i := slices.IndexFunc(t.tools, func(known model.ToolSpec) bool { return known.Name == toolSpec.Name })
	if i < 0 {
		t.tools, t.commands = append(t.tools, toolSpec), append(t.commands, command)
		return t, nil
	}
	if t.tools[i] != toolSpec || !slices.Contains(t.commands, command) {
		return t, refuse.Bad("give one of them another name", "%s: another agent has a different tool %q", path, cfg.Name)
	}
	return t, nil
}

// withParkTimeout adds how long a run may be parked that begins with an agent.
func withParkTimeout(all map[string]int64, d agentfile.Definition) map[string]int64 {
	next := maps.Clone(all)
	if next == nil {
		next = map[string]int64{}
	}
	next[d.Name] = d.ParkTimeout.Milliseconds()
	return next
}
