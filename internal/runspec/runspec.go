// Package runspec builds a run: it makes the first entry of a run's log, supervisor.Opened,
// from the request of a client. After that entry, only the log decides what the run is.
//
// Build is a pipeline of values. Each stage is given the values of those before it, and
// returns what it adds and its warnings; it changes nothing else. The stages, in order:
//
//  1. acceptRequest checks the request: limits, the directory, loop options, scripts that it
//     names. It is first because it needs nothing and reads no file whose name it has not
//     checked. It also reads settings that belong to its directory (troupe.yaml, Claude Code,
//     policy) and lists the requested agents, once.
//  2. chooseModels finds the run's model and its fallbacks. Agents inherit the model, and a
//     limit in money depends on what the chain costs, so this comes before any agent.
//  3. resolveAgents lists the definitions: built-in agents, the plan, agents of the program,
//     agent files. Their order decides precedence. The stage needs the model,
//     because a file may name another one, and a share of the limits. Then it leaves out
//     what does not fit the first entry, before tools are granted to it.
//  4. resolveTools lists the tools and grants them. Within it the order is: MCP servers (it
//     starts them and asks for their tools; agent files may define some), the tools of the
//     directory and of the loop, restricted tools, the tools that the request takes away, the
//     class of each tool, then rights by name. It then drops agents whose grants do not fit the
//     first entry.
//  5. attachMedia checks attachments against the models that the root may call: the root's
//     definition decides which, and it has its model and options by now.
//  6. placeAgents chooses the node pools. An agent that lives elsewhere loses the tools of the
//     directory, so tools are known before it.
//  7. addHooks lists the run's hooks: those of the loop options, the operator's, and the
//     guardrails of the request and of the directory. Hooks of definitions come from stage 3.
//  8. runPermissions lists the permission rules: the operator's, the user's for the directory, the
//     directory's own, the request's. It needs the request alone; agent files have theirs by stage 3.
//  9. recordVersions records the hashes of tools, hooks, policy, routes and prompts. It comes
//     before the prompts are composed: a prompt names the day, which must not count as a difference.
//  10. composePrompts composes the system prompts, and starts the recording of the run's
//     exchanges.
//
// Stages with effects: 4 starts MCP servers, 5 stores attachments, 10 starts the recording. 10 is
// last, so a refused request leaves no recording.
package runspec

import (
	"context"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/routes"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Config holds what a node contributes to the runs that it builds.
type Config struct {
	// Routes finds models, Recordings record their exchanges or replay them.
	Routes     *routes.Resolver
	Recordings routes.Recordings
	// Model is the operator's route: requests may name it, whatever kind of route it is.
	Model string
	// Trust decides which files requests may name.
	Trust trust.Policy
	// Charges is what is charged for agents of other programs: see agentfile.ChargeFor.
	Charges map[string]float64
	// Tools makes the tools of agents.
	Tools *toolset.Builder
	// OwnTools and Agents are those of the program that embeds the node.
	OwnTools []string
	Agents   []agentfile.Definition
	// Hooks are the operator's own, for every agent of every run.
	Hooks []spec.Hook
	// Permissions are the operator's own, for every agent of every run.
	Permissions spec.Permissions
	// UserRules are those of the user of this node, instead of Permissions, and the user's for single directories; nil:
	// the node has no user.
	UserRules *UserRules
	// ClaudeHome is the directory of the user's own files of Claude Code (~/.claude); "": the node reads none.
	ClaudeHome string
	// Env reads the environment.
	Env func(string) string
	// SearchParentDirs lets agents read a project's instructions above the directory of the run.
	SearchParentDirs bool
	// Mask finds secrets in attachments, and Blobs keep them. Without Blobs a request
	// with attachments is refused.
	Mask  *redact.Masker
	Blobs mailbox.Blobs
	// Pools are the node pools of a shared server; nil: this node owns all logs.
	Pools *NodePools
	// Machine names the pool of runs that have a directory.
	Machine string
}

// Builder builds runs. It is safe for concurrent use.
type Builder struct {
	cfg   Config
	cache buildCache
}

// New returns a Builder.
func New(cfg Config) *Builder { return &Builder{cfg: cfg} }

// buildTimeout bounds the building of a run.
const buildTimeout = 30 * time.Second

// Build makes the first entry of a run, and the answer to the client. A fresh build of an equal request counts again
// (buildcache.go).
func (b *Builder) Build(r client.RunRequest) (o supervisor.Opened, a client.RunAccepted, err error) {
	key := b.cacheKey(r)
	if key != "" {
		if err := checkRequest(r); err != nil {
			return o, a, err
		}
		if o, a, ok := b.cache.get(key, r); ok {
			return o, a, nil
		}
	}
	began := time.Now()
	o, a, err = b.buildWhole(r)
	if key != "" && err == nil && len(a.Notes) == 0 && !dependsOnFiles(o) {
		b.cache.put(key, began, o, a)
	}
	return o, a, err
}

// FindIgnored returns the parts of agent files that a run ignores, because anyone may have written the files.
func FindIgnored(b *Builder, r client.RunRequest) ([]IgnoredParts, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	req, err := b.acceptRequest(r)
	if err != nil {
		return nil, err
	}
	models, err := b.chooseModels(ctx, req)
	if err != nil {
		return nil, err
	}
	team, err := b.resolveAgents(req, models)
	return team.ignored, err
}

// buildWhole is Build without the cache. See the package comment for its stages.
func (b *Builder) buildWhole(r client.RunRequest) (o supervisor.Opened, a client.RunAccepted, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	a.RunID = r.RunID
	req, err := b.acceptRequest(r)
	if err != nil {
		return o, a, err
	}
	models, err := b.chooseModels(ctx, req)
	if err != nil {
		return o, a, err
	}
	team, err := b.resolveAgents(req, models)
	if err != nil {
		return o, a, err
	}
	tools, err := b.resolveTools(req, models, team)
	if err != nil {
		return o, a, err
	}
	media, err := b.attachMedia(ctx, req, models, tools.findDefinition(team.root))
	if err != nil {
		return o, a, err
	}
	placed, err := b.placeAgents(ctx, req, tools, team.required)
	if err != nil {
		return o, a, err
	}
	hooks, err := b.addHooks(req, models.options, placed.definitions)
	if err != nil {
		return o, a, err
	}
	permissions, err := b.runPermissions(req)
	if err != nil {
		return o, a, err
	}
	recorded, err := b.recordVersions(req, team.policy, models.model, tools, placed.definitions)
	if err != nil {
		return o, a, err
	}
	prompts, err := b.composePrompts(req, models.choice, recorded.definitions)
	if err != nil {
		return o, a, err
	}
	o = supervisor.Opened{Run: r.RunID, Conversation: r.Conversation, Goal: r.Prompt, Media: media.media, Root: team.root,
		Definitions: prompts.definitions, Tools: tools.tools, Commands: team.commands, Servers: tools.servers,
		Model: models.model, Why: models.choice.Why, Limits: models.limits, Agent: models.agentLimits, RootTurns: r.MaxTurns, Policy: team.policy,
		Caller: r.Caller, Priority: r.Priority, Constraints: r.Constraints, Criteria: r.Criteria, FailIf: r.FailureConditions, Trace: r.Trace,
		Workspace: req.workspace, Writable: writablePaths(req, models.choice), LoopOptions: models.options, Permissions: &permissions,
		Hashes: recorded.hashes, NodePool: placed.pool, Unpriced: r.AllowUnpriced, ParkMS: parkTimeout(r.ParkTimeout, team.parkMS[team.root])}
	if r.Outside {
		o.Tainted = &spec.Taint{Source: "its task"}
	}
	o.LoopOptions.Hooks = hooks.hooks
	pinOutputLimits(&o)
	if len(prompts.definitions) > 0 {
		o.LoopOptions.Dynamic = prompts.dynamic
	}
	warnings := slices.Concat(models.warnings, team.warnings, tools.warnings, media.warnings,
		warnMissingDirectory(req, tools, team.root), warnUnmatchedRules(req, tools.tools, prompts.definitions), warnCutRules(o), warnTrifecta(o), placed.warnings, hooks.warnings, prompts.warnings)
	a.Notes = toolset.LimitNotes(warnings, toolset.NotesMax, "notes")
	a.UserSettings = req.isOwn
	a.Model, a.Why, a.Limit = models.choice.Name(), models.choice.Why, models.limits.Tokens
	a.LimitUSD, a.Estimated = float64(models.limits.Nano)/budget.NanoPerUSD, models.model.Price.Estimated
	return o, a, nil
}
