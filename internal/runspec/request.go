package runspec

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/loopoptions"
	"github.com/troupe-run/troupe/internal/namedlimit"
	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/routes"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/trust"
	scriptfile "github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	// PromptMax is the maximum size of a prompt in bytes.
	PromptMax = 64 << 10
	// NamedModelsMax is how many models a request may allow without a price.
	NamedModelsMax = 64
)

// acceptedRequest is a request that was accepted.
type acceptedRequest struct {
	client.RunRequest
	workspace string           // without links; "": the run has no directory
	agents    []string         // that it names: the root, and those of its plan
	options   spec.LoopOptions // fallbacks by name only
	policy    supervisor.Policy
	// permissions are those that the request brings.
	permissions spec.Permissions
	settings    *agentfile.DirectorySettings // of the workspace; nil without one
	claude      []agentfile.ClaudeSettings   // the user's own first
	operator    operatorRules
	isOwn       bool // a command of the user of this node sent it
}

// acceptRequest checks the request on its own.
func (b *Builder) acceptRequest(r client.RunRequest) (acceptedRequest, error) {
	req := acceptedRequest{RunRequest: r, agents: requestedAgents(r)}
	if err := checkRequest(r); err != nil {
		return req, err
	}
	var err error
	if req.permissions, err = requestPermissions(r); err != nil {
		return req, err
	}
	if req.workspace, _, err = b.cfg.Trust.CheckNamed(r, "dir", r.Dir, b.cfg.Trust.Roots); err != nil {
		return req, err
	}
	if req.options, err = loopOptions(r); err != nil {
		return req, err
	}
	if err := b.checkScripts(r); err != nil {
		return req, err
	}
	if req.operator, err = readOperatorRules(&b.cfg); err != nil {
		return req, err
	}
	req.settings = settingsOf(req.workspace)
	req.isOwn = b.cfg.ClaudeHome != "" && b.cfg.Trust.IsOwnRequest(r)
	if req.claude, err = b.claudeSettings(req.workspace, req.isOwn); err != nil {
		return req, err
	}
	req.options.Unattended = req.options.Unattended || asksNobody(req)
	req.policy, err = requestPolicy(b.cfg.Trust, r, req.workspace, req.settings)
	return req, err
}

// requestedAgents are the agents that a request names: the root, and those of its plan.
func requestedAgents(r client.RunRequest) []string {
	var names []string
	if root := rootOf(r); root != "" {
		names = append(names, root)
	}
	if slices.Contains(orchestrator.RouteNames(), r.Agent) {
		if p, ok := orchestrator.ParsePlan(r.Agent, r.Prompt); ok {
			names = append(names, p.AgentNames()...)
		}
	}
	return names
}

// rootOf returns the agent that a request names or, in a conversation that was handed off, the one that has it; "": the
// default.
func rootOf(r client.RunRequest) string { return cmp.Or(r.Agent, r.Holder) }

// checkRequest refuses a request that no node could execute as it is.
func checkRequest(r client.RunRequest) error {
	if strings.TrimSpace(r.Prompt) == "" {
		return refuse.Bad("troupe run \"what to do\"", "there is no prompt")
	}
	if len(r.Prompt) > PromptMax {
		return refuse.Bad("put long material into a file of the directory",
			"the prompt has %d bytes, at most %d are allowed", len(r.Prompt), PromptMax)
	}
	if err := checkLimits(r); err != nil {
		return err
	}
	if n := max(len(r.AllowUnpriced), len(r.AllowUnbounded)); n > NamedModelsMax {
		return refuse.Bad("name only models that the run may call",
			"allow_unpriced or allow_unbounded names %d models, at most %d are allowed", n, NamedModelsMax)
	}
	if _, err := throttle.ParsePriority(r.Priority); err != nil {
		return refuse.Bad("write high, normal or low, or leave it out for normal", "priority is %q", clip.Marked(r.Priority, wordShown, "…"))
	}
	return checkSentences(r)
}

const wordShown = 40 // bytes of a word in an error

// checkSentences refuses sentences that a prompt could not state one by one.
func checkSentences(r client.RunRequest) error {
	for _, field := range []struct {
		name string
		list []string
	}{{"constraints", r.Constraints}, {"criteria", r.Criteria}, {"failure conditions", r.FailureConditions}} {
		if problem, hint := agentfile.SentenceProblem(field.name, field.list); problem != "" {
			return refuse.Bad(hint, "%s", problem)
		}
	}
	return nil
}

// Maximum values in a request: sums of higher ones would overflow.
const (
	limitMax = 1 << 40
	usdMax   = 1e6
)

const zeroHint = "use 0 for the default"

// checkLimits refuses limits that are out of range.
func checkLimits(r client.RunRequest) error {
	for _, limit := range [...]struct {
		name string
		n    int64
	}{{"max_turns", int64(r.MaxTurns)}, {"max_tokens", r.MaxTokens}, {"max_tool_calls", r.MaxToolCalls}, {"max_agent_tokens", r.MaxAgentTokens},
		{"max_depth", int64(r.MaxDepth)}, {"max_children", int64(r.MaxChildren)}, {"max_agents", int64(r.MaxAgents)}, {"max_messages", int64(r.MaxMessages)}} {
		if limit.n < 0 || limit.n > limitMax {
			return refuse.Bad(zeroHint, "%s is %d: it may be 0 to %d", limit.name, limit.n, int64(limitMax))
		}
	}
	if r.MaxBacklog < 0 || r.MaxBacklog > spec.BacklogMost {
		return refuse.Bad(zeroHint, "max_backlog is %d: it may be 0 to %d", r.MaxBacklog, spec.BacklogMost)
	}
	if r.BacklogLease < 0 || r.BacklogLease > spec.TimeoutMaxMS {
		return refuse.Bad(zeroHint, "backlog_lease_ms is %d: it may be 0 to %d", r.BacklogLease, int64(spec.TimeoutMaxMS))
	}
	for _, n := range namedlimit.All() {
		if v := r.Field(n.Request); v != nil && !n.Allows(*v) {
			return refuse.Bad(zeroHint, "%s is %d: it may be %d to %d", n.Request, *v, n.Least, n.Most)
		}
	}
	for _, limit := range [...]struct {
		name string
		usd  float64
	}{{"max_budget_usd", r.MaxBudgetUSD}, {"max_agent_budget_usd", r.MaxAgentBudgetUSD}} {
		if limit.usd < 0 || limit.usd > usdMax {
			return refuse.Bad(zeroHint, "%s is %g: it may be 0 to %g", limit.name, limit.usd, float64(usdMax))
		}
		if limit.usd > 0 && limit.usd*budget.NanoPerUSD < 1 { // it would be cut off to 0, which is no limit
			return refuse.Bad(zeroHint, "%s is %g: the smallest limit is 1e-9", limit.name, limit.usd)
		}
	}
	if r.QuestionTimeout < 0 || r.QuestionTimeout > spec.TimeoutMaxMS {
		return refuse.Bad("0 means as long as the run may be parked",
			"question_timeout_ms is %d: it may be 0 to %d", r.QuestionTimeout, int64(spec.TimeoutMaxMS))
	}
	if r.ParkTimeout < 0 || r.ParkTimeout > spec.TimeoutMaxMS {
		return refuse.Bad("use 0 for 30 days",
			"park_timeout_ms is %d: it may be 0 to %d", r.ParkTimeout, int64(spec.TimeoutMaxMS))
	}
	if r.TimeoutMS < 0 || r.TimeoutMS > spec.TimeoutMaxMS {
		return refuse.Bad(zeroHint, "timeout_ms is %d: it may be 0 to %d", r.TimeoutMS, int64(spec.TimeoutMaxMS))
	}
	return nil
}

// parkTimeout is how long a run may be parked: of what the request and the root agent say, the lower one counts.
func parkTimeout(request, root int64) int64 {
	if request > 0 && root > 0 {
		return min(request, root)
	}
	return cmp.Or(request, root, spec.ParkDefaultMS)
}

const loopOptionsHint = "see docs/loop-options.md"

// loopOptions returns the loop options of a request: its flags take precedence over its
// loop options.
func loopOptions(r client.RunRequest) (spec.LoopOptions, error) {
	var m spec.LoopOptions
	if r.LoopOptions != nil {
		m = *r.LoopOptions
	}
	if len(m.Hooks) > 0 || m.Dynamic != "" {
		return m, refuse.Bad("write them into an agent file", "a request cannot bring hooks or prompts")
	}
	if r.Fallback != nil {
		m.Fallbacks = nil
		for _, name := range r.Fallback {
			m.Fallbacks = append(m.Fallbacks, spec.Model{Name: name})
		}
	}
	for _, text := range r.RequireTool {
		m.Require.Evidence = append(slices.Clip(m.Require.Evidence), agentfile.ParseEvidence(text))
	}
	if len(r.JSONSchema) > 0 {
		m.Require.Schema = string(r.JSONSchema)
	}
	m.QuestionMS = cmp.Or(r.QuestionTimeout, m.QuestionMS)
	m.Unattended = m.Unattended || r.Unattended
	if r.UseTokens != 0 {
		m.Continue.Tokens = r.UseTokens
	}
	if r.ToolRetries != 0 {
		m.ToolRetries = r.ToolRetries
	}
	if r.PatienceMS != 0 {
		m.PatienceMS = r.PatienceMS
	}
	if err := loopoptions.Check(m); err != nil {
		return m, refuse.Bad(loopOptionsHint, "%s", strings.TrimPrefix(err.Error(), loopoptions.ErrInvalid.Error()+": "))
	}
	return loopoptions.Fill(m), nil
}

// checkScripts refuses a request that names a script as a model, unless the operator has approved
// its content or keeps it in a trusted place: a client must not make the node read any other
// file.
func (b *Builder) checkScripts(r client.RunRequest) error {
	for _, route := range trust.RoutesOf(r) {
		path, ok := trust.ScriptPath(route)
		if !ok || b.cfg.Routes.IsOwn(route) || route == b.cfg.Model {
			continue
		}
		if _, err := b.cfg.Routes.ReadScript(path, b.cfg.Trust.TrustsNamedScript); err != nil {
			isOpen := b.cfg.Trust.RequestsFromUser || trust.ContainingPlace(trust.ResolvePath(path), b.cfg.Trust.Places) != ""
			return badScript(route, path, isOpen, err)
		}
	}
	return nil
}

// badScript explains why a request cannot use a script. About a file that is not approved, and in no open place, a
// client learns nothing: neither whether it exists, nor its contents.
func badScript(route, path string, isOpen bool, err error) error {
	switch {
	case errors.Is(err, scriptfile.ErrScript):
		why := safefile.ErrorLine(err)
		if errors.Is(err, io.EOF) {
			why = ", it is empty"
		}
		return refuse.Bad("see docs/models.md#scripted-models", "model %s: it is not a script%s", strings.Replace(route, "script//", "script/", 1), why)
	case isOpen && errors.Is(err, fs.ErrNotExist):
		return refuse.Bad("name an existing one", "model %s: there is no such file", route)
	case isOpen && !errors.Is(err, routes.ErrNotApproved):
		return refuse.Bad("name a regular file", "model %s: %v", route, err)
	}
	if !filepath.IsAbs(path) { // as screens show the route: see term.ModelName
		return refuse.Forbidden("write a whole path with both slashes, such as script//"+path, "model %s: a request cannot name a script by a path that depends on the node's directory", route)
	}
	return refuse.Forbidden("check that the file exists; start the node with --trust "+filepath.Dir(path)+", or use `troupe run -m` on its machine",
		"model %s: a request cannot name a script that is missing, or that the user of this node has not approved", route)
}

// badModel explains why a model cannot be used. A script that a run may have written is forbidden, whether a
// user, a file or a request names it.
func badModel(err error, hint, format string, args ...any) error {
	if errors.Is(err, routes.ErrNotApproved) {
		return refuse.Forbidden("approve the content with `troupe run -m` or `troupe run --agents` on the machine of the node, or keep the script outside of the roots",
			format, args...)
	}
	return refuse.Bad(hint, format, args...)
}

// writablePaths returns the paths that the run writes without a question. An investigation of builtin/scout may write
// its report under the name that its user gives it: the content is the report's, and write_file keeps other files.
func writablePaths(req acceptedRequest, c provider.Choice) []string {
	paths := toolset.WritablePaths()
	name := investigator.NamedReport(req.Prompt)
	if name == "" || req.workspace == "" || req.Outside || c.Provider != provider.Builtin || slices.Contains(paths, name) {
		return paths
	}
	return append(paths, name)
}
