package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/telemetry"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

func (c *viewer) getRun(ctx context.Context, r client.GetRequest) (any, error) {
	row, err := c.lookup.findRun(ctx, r.RunID)
	if err != nil {
		return row.RunInfo, err
	}
	if r.Brief {
		return c.briefRun(ctx, row)
	}
	if result, ended, ok := c.cfg.Runs.Ends.RecentResult(row.RunID); ok && !r.Describe {
		runindex.FinishRow(&row.RunInfo, result, ended)
		return row.RunInfo, nil
	}
	full, err := c.states.Replay(ctx, c.cfg.Post, row.RunID)
	s := full.State
	if refuse.IsNewer(err) && row.State == client.RunFinished {
		return row.RunInfo, nil // only the row can be shown
	}
	if err != nil {
		return row.RunInfo, err
	}
	info := withState(row, s)
	info.State = c.shownState(info.State, s.Summary(true))
	info = withPosition(info, c.cfg.Queue.placeOf(info.RunID))
	if !r.Describe || s.Phase == "" {
		return info, nil
	}
	d := describeRun(s)
	d.Backlog = countTasks(s, c.cfg.Now().UnixMilli())
	m, _ := s.Member(spec.Root)
	root, err := runlog.ReplayAgent(ctx, c.cfg.Post, mailbox.At(r.RunID, string(spec.Root)).In(m.NodePool))
	if err != nil {
		return info, err
	}
	if root.Task.ID != "" { // it has read its task
		d.RootTurns = root.Task.Limits.WithDefaults(0).Turns
	}
	if d.Journal, err = encodeJournal(root); err != nil {
		return info, err
	}
	info.Description = &d
	return info, nil
}

// briefRun returns the row of a run with its current state: see package runview for what it reads.
func (c *viewer) briefRun(ctx context.Context, row runindex.Row) (client.RunInfo, error) {
	l, err := c.views.ViewOne(ctx, row)
	if refuse.IsNewer(err) && row.State == client.RunFinished {
		return row.RunInfo, nil
	}
	if err != nil {
		return row.RunInfo, err
	}
	info := l.Row.RunInfo
	info.State = c.shownState(l.State(), l.Summary)
	if info.State != client.RunFinished {
		info.AgentsStarted, info.LiveAgents = l.Summary.Joined, liveAgents(l.Summary)
	}
	return withPosition(info, c.cfg.Queue.placeOf(info.RunID)), nil
}

// liveAgents returns the agents of a summary that have not ended.
func liveAgents(s supervisor.Summary) (live []client.LiveAgent) {
	for _, a := range s.Agents {
		if !a.Done {
			live = append(live, client.LiveAgent{ID: string(a.ID), Node: a.Node})
		}
	}
	return live[:min(len(live), liveAgentsMax)]
}

// liveAgentsMax is how many agents a brief answer names.
const liveAgentsMax = 100

// encodeJournal is the run journal of an agent; nil if it kept none.
func encodeJournal(s agent.State) (json.RawMessage, error) {
	raw, err := json.Marshal(s.Journal)
	if err != nil {
		return nil, fmt.Errorf("control: journal of %s: %w", s.Task.ID, err)
	}
	if empty := string(raw); empty == "{}" || empty == "null" {
		return nil, nil
	}
	return raw, nil
}

// describeRun returns the configuration of a run, from its first entry, and the state of its
// budget.
func describeRun(s supervisor.State) client.Description {
	r := s.Run
	d := client.Description{
		Goal: r.Goal, Caller: r.Caller, Priority: cmp.Or(r.Priority, string(throttle.PriorityNormal)), Trace: r.Trace, TraceID: telemetry.TraceID(r.Run, r.Trace), Workspace: r.Workspace, Fork: r.Fork,
		Constraints: nonNilList(r.Constraints), Criteria: nonNilList(r.Criteria), FailIf: nonNilList(r.FailIf), Writable: nonNilList(r.Writable),
		Model: client.ModelInfo{Name: r.Model.Name, Why: r.Why, Window: r.Model.Window, Price: r.Model.Price, Bound: string(modelBound(r.Model.Name)),
			Temperature: r.Model.Temperature, Effort: r.Model.Effort},
		Root: r.Root, RootTurns: cmp.Or(r.RootTurns, spec.TurnsRoot), Limits: r.Limits, AgentLimits: r.Agent.WithDefaults(1), ParkMS: r.ParkMS, Policy: r.Policy,
		LoopOptions: r.LoopOptions, Definitions: []client.DefinitionInfo{}, Tools: []client.ToolInfo{}, Agents: []client.AgentInfo{},
		Budget: client.BudgetInfo{Limit: s.Pool.Limit, Used: s.Pool.Spent, Reserved: s.Pool.Held, Kept: s.Pool.Kept, Carved: s.Pool.Carved,
			Unknown: s.Pool.Unknown, Overrun: s.Pool.Overrun, Frozen: s.Frozen, Waiting: s.Waiting(), Paused: supervisor.PausedRequests(s)},
	}
	if s.PolicySetAt > 0 {
		d.PolicySet = &client.PolicyOrigin{By: s.PolicySetBy, At: time.UnixMilli(s.PolicySetAt).UTC().Format(time.RFC3339)}
	}
	for _, def := range r.Definitions {
		d.Definitions = append(d.Definitions, describeDefinition(def))
	}
	for _, toolSpec := range r.Tools {
		t := client.ToolInfo{Name: toolSpec.Name, Class: toolSpec.Class, Description: toolSpec.Description}
		if i := slices.IndexFunc(r.Commands, func(c spec.Command) bool { return c.Name == toolSpec.Name }); i >= 0 {
			t.Command = r.Commands[i].Line
		}
		d.Tools = append(d.Tools, t)
	}
	s.Members(func(m supervisor.Member) {
		a := s.Pool.Account(string(m.ID))
		d.Agents = append(d.Agents, client.AgentInfo{ID: m.ID, Name: m.Name, Depth: m.Depth, Tools: nonNilList(r.OfferedTools(m)), Rights: nonNilList(m.Rights),
			Limit: a.Limit, Used: a.Spent, Reserved: a.InUse(), Kept: a.Kept, Share: a.Share, Subtree: supervisor.SubtreeOf(s, m)})
	})
	d.Agents, d.AgentsLeftOut = bounds.FitList(d.Agents, func(a client.AgentInfo) int { return a.Depth })
	return d
}

// modelBound returns the bound of the model's provider.
func modelBound(route string) provider.CostBound {
	name, _, _ := strings.Cut(route, "/")
	return provider.BoundOf(name)
}

func describeDefinition(def supervisor.Definition) client.DefinitionInfo {
	hash := sha256.Sum256([]byte(def.System))
	i := client.DefinitionInfo{Name: def.Name, Source: def.Source, Description: def.Description, PromptBytes: len(def.System), PromptHash: hex.EncodeToString(hash[:]),
		Tools: def.Tools, Deny: def.Deny, Delegates: def.Delegates, Handoffs: def.Handoffs, Limits: def.Limits,
		Constraints: def.Constraints, Criteria: def.Criteria, FailIf: def.FailIf}
	if def.Model != nil {
		i.Model = def.Model.Name
	}
	if !reflect.DeepEqual(def.LoopOptions, spec.LoopOptions{}) {
		i.LoopOptions = &def.LoopOptions
	}
	return i
}

// nonNilList is never null in JSON.
func nonNilList(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}
