package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/model/scout"
	"github.com/troupe-run/troupe/settings"
	"github.com/troupe-run/troupe/supervisor"
)

// Limits of a run that names none.
const (
	ScoutTokens = 60_000
	ModelTokens = 1_000_000
	PaidNano    = settings.DefaultUSD * usdNano // for a paid key without a limit
	PromptMax   = 64 << 10
	// NamedModelsMax is how many models a request may allow without a price.
	NamedModelsMax = 64
	usdNano        = 1e9
	coordinatorID  = "coordinator"
)

func bad(hint, format string, args ...any) error {
	return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf(format, args...), Hint: hint}
}

// build makes the first entry of a run from what a client asked: after it,
// nothing but the log decides what the run is.
func (h *Host) build(r client.RunRequest) (supervisor.Opened, client.RunAccepted, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	var none supervisor.Opened
	a := client.RunAccepted{RunID: r.RunID}
	if err := meant(r); err != nil {
		return none, a, err
	}
	if err := wholeTools(r); err != nil {
		return none, a, err
	}
	dir, err := h.rooted("dir", r.Dir)
	if err != nil {
		return none, a, err
	}
	m, err := wanted(r)
	if err != nil {
		return none, a, err
	}
	if err := h.scripts(r); err != nil {
		return none, a, err
	}
	choice, err := h.models.choose(ctx, r.Model)
	if err != nil {
		return none, a, badModel(err, "`-m PROVIDER/MODEL` names one", "%v", err)
	}
	m, chain, err := h.routes(m, route(choice, r), r.AllowUnpriced)
	if err != nil {
		return none, a, badModel(err, "name models as PROVIDER/MODEL", "%v", err)
	}
	o := supervisor.Opened{Run: r.RunID, Conversation: r.Conversation, Goal: r.Prompt, Root: r.Agent, Rules: h.rules(),
		Model: route(choice, r), Why: choice.Why, Caller: r.Caller, Constraints: r.Constraints, Criteria: r.Criteria, Trace: r.Trace,
		Workspace: dir, RootTurns: r.MaxTurns, Writable: writable(r.Yes), Unpriced: r.AllowUnpriced}
	if r.Policy != nil {
		o.Policy = *r.Policy
	}
	o.Limits, o.Agent = limits(r, append([]pick.Choice{choice}, chain...))
	if err := payable(o, &a); err != nil {
		return none, a, err
	}
	o.Manners = affordable(m, o.Limits.Nano, "fallback ", &a).Over(agent.DefaultManners())
	if o.Manners.Context.Model == nil {
		o.Manners.Context.Model = summarizer(choice)
	}
	if err := h.cast(&o, r, &a); err != nil {
		return none, a, err
	}
	if err := h.attachments(ctx, &o, r, &a); err != nil {
		return none, a, err
	}
	tellOfNoDirectory(o, &a)
	if err := h.place(ctx, &o, &a); err != nil {
		return none, a, err
	}
	if err := h.hooks(&o, &a); err != nil {
		return none, a, err
	}
	if err := h.versions(&o); err != nil {
		return none, a, err
	}
	if err := h.compose(&o, r, choice, &a); err != nil {
		return none, a, err
	}
	a.Notes = few(a.Notes, NotesMax, "notes")
	a.Model, a.Why, a.Limit = choice.Name(), choice.Why, o.Limits.Tokens
	return o, a, nil
}

// payable refuses a limit in money that cannot be kept, unless somebody has said
// that it need not be.
func payable(o supervisor.Opened, a *client.RunAccepted) error {
	name := o.Model.Name
	switch {
	case o.Limits.Nano == 0 || o.Model.Price.Known:
	case o.Model.Price.Allowed:
		a.Notes = append(a.Notes, "the price of "+name+" is unknown: the limit in money does not hold for its calls")
	default:
		return bad("give --max-tokens instead of a limit in money, its price with --pricing-file, or --allow-unpriced "+name,
			"the price of %s is unknown, so a limit in money cannot be kept", name)
	}
	return nil
}

// meant refuses a request that no node could do as it says.
func meant(r client.RunRequest) error {
	if strings.TrimSpace(r.Prompt) == "" {
		return bad("troupe run \"what to do\"", "there is no prompt")
	}
	if len(r.Prompt) > PromptMax {
		return bad("put long material into a file of the directory", "the prompt has %d bytes, at most %d are allowed", len(r.Prompt), PromptMax)
	}
	if err := sane(r); err != nil {
		return err
	}
	if n := max(len(r.AllowUnpriced), len(r.AllowUnbounded)); n > NamedModelsMax {
		return bad("name those that the run may call", "%d models are allowed by name, at most %d are read", n, NamedModelsMax)
	}
	if r.Policy != nil {
		if err := r.Policy.Validate(); err != nil {
			return bad("see docs/policy.md", "%v", err)
		}
	}
	return nil
}

// Most that a client may ask for: beyond it sums would overflow.
const (
	limitMax = 1 << 40
	usdMax   = 1e6
)

// sane refuses limits that mean nothing.
func sane(r client.RunRequest) error {
	for name, n := range map[string]int64{"max_turns": int64(r.MaxTurns), "max_tokens": r.MaxTokens, "max_tool_calls": r.MaxToolCalls,
		"max_depth": int64(r.MaxDepth), "max_children": int64(r.MaxChildren), "max_agents": int64(r.MaxAgents), "max_messages": int64(r.MaxMessages)} {
		if n < 0 || n > limitMax {
			return bad("0 is the default", "%s is %d", name, n)
		}
	}
	if r.MaxBudgetUSD < 0 || r.MaxBudgetUSD > usdMax {
		return bad("0 is the default", "max_budget_usd is %g", r.MaxBudgetUSD)
	}
	if r.TimeoutMS < 0 || r.TimeoutMS > agent.TimeoutMaxMS {
		return bad("0 is the default", "timeout_ms is %d", r.TimeoutMS)
	}
	return nil
}

func route(c pick.Choice, r client.RunRequest) agent.Model {
	return along(agent.Model{Temperature: r.Temperature, Effort: r.Effort}, c, r.AllowUnpriced)
}

func writable(yes bool) []string {
	if yes {
		return []string{"**"}
	}
	return []string{"report.md", "report.json"}
}

// limits are those of the request, and the defaults where it names none. The
// first of the chain is the model, the others are what may take its place.
func limits(r client.RunRequest, chain []pick.Choice) (supervisor.Limits, agent.Limits) {
	c := chain[0]
	l := supervisor.Limits{Tokens: r.MaxTokens, Nano: int64(r.MaxBudgetUSD * usdNano), Calls: r.MaxToolCalls,
		Depth: r.MaxDepth, Children: r.MaxChildren, Agents: r.MaxAgents, Messages: r.MaxMessages}
	if l.Tokens == 0 {
		l.Tokens = ModelTokens
		if c.Provider == pick.Builtin {
			l.Tokens = ScoutTokens
		}
	}
	paid := slices.ContainsFunc(chain, func(c pick.Choice) bool { return c.Paid })
	if l.Nano == 0 && paid && (r.MaxTokens == 0 || r.PaidLimit) {
		l.Nano = PaidNano
	}
	var a agent.Limits
	if c.MaxOutput > 0 {
		a.Output = min(agent.OutputDefault, c.MaxOutput)
	}
	if d := r.TimeoutMS; d > 0 {
		a.SoftMS, a.HardMS = d, agent.HardLimitMS(d)
	}
	return l, a
}

// rooted checks that a client may name a directory, or a file: it lies under a
// root. field is that of the request.
func (h *Host) rooted(field, path string) (string, error) {
	real, _, err := h.placed(field, path, h.cfg.Roots)
	return real, err
}

// placed checks that a client may name a path: it lies in one of these places,
// which is returned with it.
func (h *Host) placed(field, path string, places []string) (real, place string, err error) {
	if path == "" {
		return "", "", nil
	}
	if !filepath.IsAbs(path) {
		return "", "", bad("send an absolute path", "%s %q is not absolute", field, path)
	}
	real, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", "", bad("name one that is there", "%s: %v", field, err)
	}
	if place = containingPlace(real, places); place != "" {
		if info, err := os.Stat(place); err == nil && !info.IsDir() {
			place = filepath.Dir(place)
		}
		return real, place, nil
	}
	root := path
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		root = filepath.Dir(path)
	}
	return "", "", &client.Error{Code: client.CodeForbidden, Text: fmt.Sprintf("%s %s is not under a root of this node", field, path),
		Hint: "start the node with --root " + root + ", or run with another --store-dir; if the node is a `troupe run` for another directory, it ends with that run"}
}

// nameable are the places in which a request may name agent files and files of
// MCP servers.
func (h *Host) nameable() []string { return slices.Concat(h.cfg.Trust, h.cfg.Roots) }

// cast decides who plays: the built-in agents and those of agent files, and
// what tools there are.
func (h *Host) cast(o *supervisor.Opened, r client.RunRequest, a *client.RunAccepted) error {
	for _, b := range scout.Agents() {
		o.Definitions = append(o.Definitions, supervisor.Definition{Name: b.Name, Description: b.Description, System: b.System,
			Tools: rights(b), Offer: b.Tools, Delegates: b.Delegates,
			Limits: agent.Limits{Turns: b.MaxTurns, Output: b.MaxOutput}})
	}
	if err := h.planner(o, r); err != nil {
		return err
	}
	if err := h.bring(o, a); err != nil {
		return err
	}
	crew, err := h.recruit(o, r, a)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(asked(r), func(name string) bool {
		return !slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == name })
	}); i >= 0 {
		return bad("`troupe agents list` shows the agents", "there is no agent %q", asked(r)[i])
	}
	if o.Root == "" {
		o.Root = coordinatorID
	}
	if err := fit(o, r, a); err != nil {
		return err
	}
	root := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == o.Root })
	if root < 0 {
		return bad("`troupe agents list` shows the agents", "there is no agent %q", o.Root)
	}
	if err := h.servers(o, &r, crew, a); err != nil {
		return err
	}
	// What is taken away by name is forbidden, to the root and all below it.
	allowed, disallowed := names(agentfile.Refs(r.AllowedTools)), disallowedTools(r)
	o.Definitions[root].Deny = slices.Concat(o.Definitions[root].Deny, disallowed)
	specs, err := h.specs(o.Workspace)
	if err != nil {
		return err
	}
	reader, err := h.keptSpec(append(specs, o.Tools...))
	if err != nil {
		return err
	}
	own := []model.ToolSpec{delegateSpec(o.Definitions, o.Manners.Kin)}
	if o.Manners.Kin {
		own = append(own, agent.SendSpec())
	}
	if o.Manners.Ask {
		own = append(own, agent.AskSpec())
	}
	if o.Manners.Journal {
		own = append(own, agent.JournalTools()...)
	}
	o.Tools = slices.Concat(specs, own, reader, o.Tools)
	if err := h.empower(o, r); err != nil {
		return err
	}
	tellUnknown(o.Tools, slices.Concat(allowed, disallowed), a)
	o.Tools = slices.DeleteFunc(o.Tools, func(s model.ToolSpec) bool {
		return len(allowed) > 0 && !slices.Contains(allowed, s.Name) || slices.Contains(disallowed, s.Name)
	})
	if err := h.classify(o, a); err != nil {
		return err
	}
	settleRights(o)
	h.approvals(o, r)
	return reachable(o)
}

// disallowedTools are the tools that a request takes away whole.
func disallowedTools(r client.RunRequest) []string {
	_, whole := agentfile.DeniedCommands(agentfile.Refs(r.DisallowedTools))
	return names(whole)
}

// rights: the built-in coordinator may pass on what it does not use itself;
// its children have just what they are offered.
func rights(b scout.Agent) []string {
	if b.Name == coordinatorID {
		return nil
	}
	return b.Tools
}

// delegateSpec tells the model whom it can delegate to.
func delegateSpec(defs []supervisor.Definition, kin bool) model.ToolSpec {
	var b strings.Builder
	b.WriteString("Give a task to a child agent and wait for its answer. Several calls in one reply run side by side. Agents:")
	for _, d := range defs {
		if d.Name != coordinatorID {
			fmt.Fprintf(&b, " %s (%s)", d.Name, strings.TrimSuffix(d.Description, "."))
		}
	}
	more := ""
	if kin {
		more = `,"background":{"type":"boolean","description":"go on at once; its answer comes to you as a message, and you do not end before it"},` +
			`"schema":{"type":"object","description":"JSON Schema that its answer must fit"}`
	}
	return model.ToolSpec{Name: "delegate", Description: clipText(b.String(), delegateTextMax), Class: model.Read,
		Schema: `{"type":"object","properties":{"agent":{"type":"string"},"task":{"type":"string"},"fork":{"type":"boolean","description":"it also reads all that you read so far"}` + more + `},"required":["task"]}`}
}

const delegateTextMax = 1024

func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
