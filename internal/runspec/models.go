package runspec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/namedlimit"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// Limits of a run that names none.
const (
	ScoutTokens = 120_000
	ModelTokens = 1_000_000
	PaidNano    = config.DefaultUSD * budget.NanoPerUSD // for a paid key without a limit
)

// modelSelection are the model of a run, its fallbacks, and their prices.
type modelSelection struct {
	choice      provider.Choice
	model       spec.Model
	options     spec.LoopOptions // of the run, with routes found
	limits      spec.RunLimits
	agentLimits spec.Limits
	warnings    []string
}

// modelHint says what to do about a model that cannot be used. A request that named one reads more than to name one.
func modelHint(err error) string {
	if errors.Is(err, provider.ErrNoModel) {
		return "`Config.Model` or `Task.Model` of the Go program names one, PROVIDER/MODEL; `-m` does for a request from the command line"
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "name a script that exists: script/FILE below the directory in which the node was started, script//FILE by a whole path; docs/models.md#scripted-models"
	}
	return "`troupe models list` shows the models and the keys that they need; builtin/scout needs none"
}

// chooseModels finds the models that the request names, and the limits of the run.
func (b *Builder) chooseModels(ctx context.Context, req acceptedRequest) (m modelSelection, err error) {
	m.choice, err = b.cfg.Routes.ChooseModel(ctx, req.Model)
	if own := modelOfAgent(b.cfg.Agents, rootOf(req.RunRequest)); errors.Is(err, provider.ErrNoModel) && own != "" {
		m.choice, err = b.cfg.Routes.ChooseModel(ctx, own)
	}
	if err != nil {
		return m, badModel(err, modelHint(err), "%v", err)
	}
	m.model = withRoute(spec.Model{Temperature: req.Temperature, Effort: req.Effort}, m.choice, req.AllowUnpriced)
	options, chain, err := findRoutes(&b.cfg, req.options, m.model, req.AllowUnpriced)
	if err != nil {
		return m, badModel(err, "name models as PROVIDER/MODEL", "%v", err)
	}
	m.limits, m.agentLimits = limitsOf(req.RunRequest, append([]provider.Choice{m.choice}, chain...))
	if m.warnings, err = checkPrice(m.model, limitInMoney(m)); err != nil {
		return m, err
	}
	options, left := withoutUnpriced(options, limitInMoney(m), "fallback ")
	m.warnings = append(m.warnings, left...)
	defaults := spec.DefaultLoopOptions()
	if m.choice.Provider == provider.Builtin {
		defaults.Watch = spec.Watch{Of: 1} // it follows rules, and searches that find nothing are part of them
		defaults.LimitNotes = spec.LimitNotes{}
	}
	m.options = options.Merge(defaults)
	if m.options.Context.Model == nil {
		m.options.Context.Model = summaryModel(m.choice)
	}
	return m, nil
}

// modelOfAgent returns the model that an agent of the program names; "" if it names none.
func modelOfAgent(agents []agentfile.Definition, name string) string {
	for _, d := range agents {
		if d.Name == name {
			return d.Model
		}
	}
	return ""
}

// findRoutes finds the models that loop options name: the node decides their prices and
// windows. The choices are those of the fallbacks.
func findRoutes(cfg *Config, m spec.LoopOptions, base spec.Model, unpriced []string) (spec.LoopOptions, []provider.Choice, error) {
	find := func(what, name string) (spec.Model, provider.Choice, error) {
		if name == "" {
			return base, provider.Choice{}, fmt.Errorf("%s: no model is named", what)
		}
		c, err := cfg.Routes.ChooseModel(context.Background(), name)
		if err != nil {
			return base, c, fmt.Errorf("%s %q: %w", what, name, err)
		}
		return withRoute(base, c, unpriced), c, nil
	}
	var chain []provider.Choice
	for i, f := range m.Fallbacks {
		found, c, err := find("fallback", f.Name)
		if err != nil {
			return m, nil, err
		}
		if i == 0 {
			m.Fallbacks = slices.Clone(m.Fallbacks)
		}
		m.Fallbacks[i], chain = found, append(chain, c)
	}
	if m.Context.Model != nil {
		found, _, err := find("context.model", m.Context.Model.Name)
		if err != nil {
			return m, nil, err
		}
		m.Context.Model = &found
	}
	return m, chain, nil
}

// withRoute returns another model with the options of base. The named ones may be called
// without a price.
func withRoute(base spec.Model, c provider.Choice, unpriced []string) spec.Model {
	base.Name, base.Window, base.Price, base.Output, base.Frame = c.Name(), c.Window, c.Price, c.MaxOutput, c.Frame
	base.Price.Allowed = !c.Price.Known && slices.Contains(unpriced, c.Name())
	return base
}

// limitsOf returns the limits of the request, with defaults for those that it omits. The
// first model of the chain is the run's model, the others are its fallbacks.
func limitsOf(r client.RunRequest, chain []provider.Choice) (spec.RunLimits, spec.Limits) {
	c := chain[0]
	l := spec.RunLimits{Tokens: r.MaxTokens, Nano: int64(r.MaxBudgetUSD * budget.NanoPerUSD), Calls: r.MaxToolCalls,
		Depth: r.MaxDepth, Children: r.MaxChildren, Agents: r.MaxAgents, Messages: r.MaxMessages,
		Backlog: r.MaxBacklog, LeaseMS: r.BacklogLease}
	if l.Tokens == 0 {
		l.Tokens = ModelTokens
		if c.Provider == provider.Builtin {
			l.Tokens = ScoutTokens
		}
	}
	paid := slices.ContainsFunc(chain, func(c provider.Choice) bool { return c.Paid })
	if l.Nano == 0 && paid && (r.MaxTokens == 0 || r.PaidLimit) {
		l.Nano = PaidNano
	}
	a := specLimits(r.AgentLimits)
	if d := r.TimeoutMS; d > 0 {
		a.SoftMS, a.HardMS = d, spec.HardLimitMS(d)
	}
	return l, a
}

// specLimits returns the limits of a request as a run records them.
func specLimits(l client.AgentLimits) spec.Limits {
	made := spec.Limits{Tokens: l.MaxAgentTokens, Nano: int64(l.MaxAgentBudgetUSD * budget.NanoPerUSD)}
	for _, n := range namedlimit.All() {
		if v := l.Field(n.Request); v != nil {
			n.Set(&made, *v)
		}
	}
	return made
}

// limitInMoney is a limit in money that binds the agents of a run: the run's, or that of each agent; 0: none.
func limitInMoney(m modelSelection) int64 { return max(m.limits.Nano, m.agentLimits.Nano) }

// checkPrice refuses a limit in money that cannot be enforced, unless the user or the
// operator allows that.
func checkPrice(m spec.Model, nano int64) (warnings []string, err error) {
	switch {
	case nano == 0 || m.Price.Known:
	case m.Price.Allowed:
		return []string{"the price of " + m.Name + " is unknown: the limit in money does not hold for its calls"}, nil
	case provider.NearestModel(m.Name) != "":
		return nil, refuse.Bad("did you mean "+provider.NearestModel(m.Name)+"? If not, give --max-tokens instead of a limit in money, or --allow-unpriced "+m.Name,
			"the price of %s is unknown, so a limit in money cannot be kept", m.Name)
	default:
		return nil, refuse.Bad("give --max-tokens instead of a limit in money, its price with --pricing-file, or --allow-unpriced "+m.Name,
			"the price of %s is unknown, so a limit in money cannot be kept", m.Name)
	}
	return nil, nil
}

// withoutUnpriced removes the models that a limit in money cannot cover, because their
// price is unknown.
func withoutUnpriced(m spec.LoopOptions, nano int64, where string) (priced spec.LoopOptions, warnings []string) {
	unknown := func(f spec.Model) bool {
		if nano == 0 || f.Price.Covered() {
			return false
		}
		warnings = append(warnings, fmt.Sprintf("%s%s is left out: its price is unknown, and there is a limit in money; --allow-unpriced %s lets it be called", where, f.Name, f.Name))
		return true
	}
	m.Fallbacks = slices.DeleteFunc(slices.Clone(m.Fallbacks), unknown)
	if m.Context.Model != nil && unknown(*m.Context.Model) {
		m.Context.Model = nil
	}
	return m, warnings
}

// summaryModel returns the model that writes summaries for agents of a model: the cheapest of
// the same provider; nil leaves the task to the model itself.
func summaryModel(c provider.Choice) *spec.Model {
	cheap, ok := c.CheapestModel()
	if !ok {
		return nil
	}
	return &spec.Model{Name: cheap.Name(), Window: cheap.Window, Price: cheap.Price}
}

// pinOutputLimits gives each definition that names no limit of output tokens the one of its model, where
// the catalogue knows it. It is pinned in the first entry, so a later release with another default decides
// the same for this run.
func pinOutputLimits(o *supervisor.Opened) {
	if o.Agent.Output != 0 {
		return
	}
	for i, def := range o.Definitions {
		m := o.Model
		if def.Model != nil {
			m = *def.Model
		}
		if def.Limits.Output == 0 && m.Output != 0 {
			budget := spec.RunLimits{Tokens: cmp.Or(def.Limits.Tokens, o.Agent.Tokens), Nano: cmp.Or(def.Limits.Nano, o.Agent.Nano)}
			o.Definitions[i].Limits.Output = outputLimit(m, o.Limits, budget)
		}
	}
}

// outputShare: by default, one call may write at most this part of a budget, because others need some, too.
const outputShare = 8

// outputLimit is the limit of output tokens of an agent that names none: that of its model, if it is
// known, but no more than a part of a budget in tokens or money.
func outputLimit(m spec.Model, budgets ...spec.RunLimits) int64 {
	if m.Output == 0 {
		return spec.OutputDefault
	}
	most := m.Output
	for _, b := range budgets {
		if b.Tokens > 0 {
			most = min(most, b.Tokens/outputShare)
		}
		if b.Nano > 0 && m.Price.Output > 0 {
			most = min(most, b.Nano/outputShare/m.Price.Output)
		}
	}
	return min(m.Output, max(most, spec.OutputDefault))
}
