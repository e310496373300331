package runspec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/assistant"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

const coordinatorID = "coordinator"

// agentSet holds the agents of a run, and the definitions in their files.
type agentSet struct {
	definitions []supervisor.Definition
	files       []agentfile.Definition // those that agent files define
	broken      error                  // the problems of files that the request's directory has and that are left out
	tools       []model.ToolSpec       // commands of agent files, and the tool for skills
	commands    []spec.Command
	root        string
	parkMS      map[string]int64             // how long a run may be parked that begins with an agent, by agent
	policy      supervisor.Policy            // with the rules of these agents
	rules       map[string][]supervisor.Rule // of agent files, by agent
	charges     map[string]float64           // US dollars for each delegation to an agent of another program
	required    map[string]bool              // agents that end the run if they cannot be used: see registerTeam
	ignored     []IgnoredParts               // of files that anyone may have written
	warnings    []string
}

// IgnoredParts are the parts of an agent file that a run ignores. A run that names the directory of the file with --agents
// has them.
type IgnoredParts struct {
	Path  string
	Agent string
	Parts string // what is ignored, and what allows it
}

func (i IgnoredParts) String() string { return i.Path + ": ignored: " + i.Parts }

// addIgnored notes parts of an agent file that the run ignores.
func (t *agentSet) addIgnored(d agentfile.Definition, format string, args ...any) {
	parts := IgnoredParts{d.Path, d.Name, fmt.Sprintf(format, args...)}
	t.ignored = append(slices.Clip(t.ignored), parts)
	t.addWarning("%s", parts)
}

func (t *agentSet) addWarning(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// hasAgent reports whether an agent of that name exists.
func (t agentSet) hasAgent(name string) bool {
	return slices.ContainsFunc(t.definitions, func(d supervisor.Definition) bool { return d.Name == name })
}

// agentResolver resolves the agents of one request: stage 3 of a build, with the values of the stages before it. Its
// methods return what they add as a new agentSet, so an agent that turns out to be unusable leaves nothing behind.
type agentResolver struct {
	cfg    *Config
	req    acceptedRequest
	models modelSelection
}

// resolveAgents lists the agents of the run.
func (b *Builder) resolveAgents(req acceptedRequest, m modelSelection) (agentSet, error) {
	r := agentResolver{&b.cfg, req, m}
	return r.resolve()
}

// resolve lists the agents of the run: the built-in ones, the one that follows a plan,
// those of the program, and those of agent files. Later ones take precedence.
func (r *agentResolver) resolve() (agentSet, error) {
	t := agentSet{root: cmp.Or(rootOf(r.req.RunRequest), DefaultAgent(r.models.choice.Provider))}
	t.definitions = r.builtinAgents()
	var err error
	if t, err = r.addAssistant(t); err != nil {
		return t, err
	}
	plan, err := r.planAgent()
	if err != nil {
		return t, err
	}
	t.definitions = append(t.definitions, plan...)
	for _, d := range r.cfg.Agents {
		if t, err = r.registerAgent(t, d); err != nil {
			return t, err
		}
	}
	if t, err = r.registerFiles(t); err != nil {
		return t, err
	}
	t = addExplorer(t, r.req)
	if i := slices.IndexFunc(r.req.agents, func(name string) bool { return !t.hasAgent(name) }); i >= 0 {
		if r.req.workspace == "" && t.nearestAgent(r.req.agents[i]) == "" {
			return t, refuse.UnknownAgent("the run has no directory: name the one that has the agent with --dir",
				"there is no agent %q", r.req.agents[i])
		}
		return t, t.unknownAgentError(r.req.agents[i])
	}
	if t, err = addForeign(r.cfg, t); err != nil {
		return t, err
	}
	kept, warning, err := fitDefinitions(t.definitions, definitionBytesMax, t.root, r.req.agents)
	if err != nil {
		return t, err
	}
	if t.definitions = kept; warning != "" {
		t.addWarning("%s", warning)
	}
	if !t.hasAgent(t.root) {
		return t, t.unknownAgentError(t.root)
	}
	t.definitions = keepReachable(t.definitions, append(slices.Clone(r.req.agents), t.root))
	t.policy, err = t.withAgentRules(r.req.policy)
	return t, err
}

// unknownAgentError refuses a name that no agent has, with the one that was probably meant.
func (t agentSet) unknownAgentError(name string) error {
	hint := "`troupe agents list` shows the agents"
	if near := t.nearestAgent(name); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return refuse.UnknownAgent(hint, "there is no agent %q", name)
}

// nearestAgent returns the agent, of the set or found elsewhere, that a misspelled name probably means; "": none.
func (t agentSet) nearestAgent(name string, found ...agentfile.Definition) string {
	names := []string{assistant.Name}
	for _, d := range found {
		names = append(names, d.Name)
	}
	for _, d := range t.definitions {
		names = append(names, d.Name)
	}
	return config.NearestName(name, names)
}

// builtinAgents returns the agents of the investigator. Its coordinator may also offer the
// tools of the program, and is a delegate only if a plan or a definition names it: it would begin an
// investigation of its own. The other agents read a directory. In a run without one they have no tools, so
// only the coordinator and agents that name them may delegate to them.
func (r *agentResolver) builtinAgents() (list []supervisor.Definition) {
	for _, a := range investigator.BuiltinAgents() {
		d := supervisor.Definition{Name: a.Name, Description: a.Description, System: a.System,
			Tools: builtinRights(a), Offer: a.Tools,
			Limits: spec.Limits{Turns: a.MaxTurns, Output: a.MaxOutput}}
		if d.Name == coordinatorID {
			d.Offer = append(slices.Clone(d.Offer), r.cfg.OwnTools...)
			if r.models.choice.Provider != provider.Builtin { // an LLM plays it
				d.Offer = append(d.Offer, declareName)
			}
			d.OnlyNamed = d.Name == rootOf(r.req.RunRequest) || !slices.Contains(r.req.agents, d.Name)
		} else {
			d.OnlyNamed = r.req.workspace == "" && cmp.Or(rootOf(r.req.RunRequest), coordinatorID) != coordinatorID && !slices.Contains(r.req.agents, d.Name)
		}
		list = append(list, d)
	}
	return list
}

// builtinRights: the built-in coordinator may pass on tools that it does not use itself;
// its children have exactly the tools that they are offered.
func builtinRights(a investigator.Agent) []string {
	if a.Name == coordinatorID {
		return nil
	}
	return a.Tools
}

// planAgent returns the agent that follows a plan, if the run begins with it: the agents to
// which it delegates are the run's, with the run's model; it itself follows rules.
func (r *agentResolver) planAgent() ([]supervisor.Definition, error) {
	i := slices.IndexFunc(orchestrator.BuiltinAgents(), func(a orchestrator.Agent) bool { return a.Name == rootOf(r.req.RunRequest) })
	if i < 0 {
		return nil, nil
	}
	if _, ok := orchestrator.ParsePlan(rootOf(r.req.RunRequest), r.req.Prompt); !ok {
		return nil, refuse.Bad(`troupe run --agent `+r.req.Agent+` "`+orchestrator.ExamplePlan(r.req.Agent)+`"`, "the prompt of %s must name the agents of the plan", r.req.Agent)
	}
	a := orchestrator.BuiltinAgents()[i]
	choice, err := r.cfg.Routes.ChooseNamed(provider.Builtin + "/" + a.Name)
	if err != nil {
		return nil, refuse.Bad("name another agent with --agent", "agent %s: %v", a.Name, err)
	}
	return []supervisor.Definition{{Name: a.Name, Description: a.Description, System: a.System,
		Offer: []string{toolname.Delegate}, OnlyNamed: true, Limits: spec.Limits{Turns: orchestrator.TurnsMax},
		Model: &spec.Model{Name: choice.Name(), Price: choice.Price},
		// Equal answers of agents are no loop here: a plan is followed, not repeated.
		LoopOptions: spec.LoopOptions{Watch: spec.Watch{Of: 1}}}}, nil
}
