package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/internal/promptlayer"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// toolFinder returns tools that agents of a run do not have yet, with their versions on this node. It refuses those
// that no new run could have here.
type toolFinder func(o supervisor.Opened, names []string) (tools []model.ToolSpec, versions map[string]string, err error)

// contextByMax bounds the name of who changes a context, in bytes.
const contextByMax = 200

// Bounds of one request.
const (
	layersAtOnce = 64
	toolsAtOnce  = 64
)

// changeContext serves the verb context: it changes the context of an agent, or returns it if
// the request changes nothing.
func (c *commander) changeContext(ctx context.Context, r client.ContextRequest) (any, error) {
	if r.Agent != "" {
		if err := names.CheckToken(r.Agent); err != nil {
			return nil, &client.Error{Code: client.CodeBad, Text: "agent: " + err.Error(), Hint: "`troupe describe` shows the ids of agents"}
		}
	}
	if !r.Changes() {
		return c.readContext(ctx, r)
	}
	if err := refuseAgentProgram(ctx); err != nil {
		return nil, err
	}
	if len(r.By) > contextByMax {
		return nil, badContext("by has %d bytes, at most %d are allowed", len(r.By), contextByMax)
	}
	if tools := slices.Concat(r.AddTools, r.RemoveTools); len(r.Layers) > layersAtOnce || len(tools) > toolsAtOnce {
		return nil, badContext("%d layers and %d tools are changed at once, at most %d and %d may be", len(r.Layers), len(tools), layersAtOnce, toolsAtOnce)
	}
	l, err := c.lookAtRun(ctx, r.RunID, r.Request)
	if err != nil {
		return nil, err
	}
	if l.Summary.Phase == "" {
		return nil, refuse.NoRun(r.RunID)
	}
	full, err := c.states.Replay(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return nil, err
	}
	if err := checkRequestsLeft(mailbox.At(r.RunID, mailbox.Super), full.Requests); err != nil {
		return nil, err
	}
	f := supervisor.ContextSet{Agent: spec.ID(r.Agent), Layers: r.Layers, RemoveTools: r.RemoveTools, By: namedBy(r.By)}
	if len(r.AddTools) > 0 {
		if c.cfg.FindTools == nil {
			return nil, badContext("this node adds no tools")
		}
		slices.Sort(r.AddTools)
		if f.AddTools, f.Hashes, err = c.cfg.FindTools(full.State.Run, slices.Compact(r.AddTools)); err != nil {
			return nil, err
		}
	}
	if l.State() != client.RunFinished {
		if why := supervisor.CheckContext(full.State, f); why != "" {
			return nil, badContext("%s", why)
		}
	}
	return c.appendContext(ctx, l, r.Request, full.State, f)
}

// appendContext appends a change. Layers of the agent alone go into its own log, so that they are in order with
// steering and answers of the same client. The rest is the supervisor's to decide about and to pass on.
func (c *commander) appendContext(ctx context.Context, l runview.View, request string, s supervisor.State, f supervisor.ContextSet) (any, error) {
	m, _ := s.Member(cmp.Or(f.Agent, spec.Root))
	if f.Agent == "" {
		m = supervisor.HolderOf(s, m)
	}
	f.Agent = m.ID
	own := agent.ContextSet{By: f.By}
	var below []spec.Layer
	for _, layer := range f.Layers {
		if layer.Below || supervisor.PassesOn(m, layer.Name) {
			below = append(below, layer)
		} else {
			layer.Agent, layer.Owner = m.ID, cmp.Or(layer.Owner, f.By)
			own.Layers = append(own.Layers, layer)
		}
	}
	if err := c.checkOwnLayers(ctx, l, m, own.Layers); err != nil {
		return nil, err
	}
	if len(own.Layers) > 0 {
		if _, err := c.appendToViewed(ctx, l, request, m.ID, "", own.Kind(), own); err != nil {
			return nil, err
		}
	}
	if f.Layers = below; len(below)+len(f.AddTools)+len(f.RemoveTools) == 0 {
		return struct{}{}, nil
	}
	return c.appendToViewed(ctx, l, request, "", m.ID, f.Kind(), f)
}

// checkOwnLayers refuses layers that conflict with those of the agent, and the removal of one that it lacks.
func (c *commander) checkOwnLayers(ctx context.Context, l runview.View, m supervisor.Member, layers []spec.Layer) error {
	if len(layers) == 0 || l.State() == client.RunFinished {
		return nil
	}
	at := mailbox.At(l.Row.RunID, string(m.ID)).In(m.NodePool)
	machine := &activation.Agent{Addr: at}
	log, err := runlog.Replay(ctx, c.cfg.Post, at, machine, nil)
	if err != nil {
		return err
	}
	if err := checkRequestsLeft(at, log.Requests()); err != nil {
		return err
	}
	has := agent.NextTask(machine.State).Layers
	for _, layer := range layers {
		if same := func(o spec.Layer) bool { return o.Name == layer.Name && o.Agent == m.ID }; layer.Text == "" && !slices.ContainsFunc(has, same) {
			return badContext("%s has no layer %q of its own", m.ID, layer.Name)
		}
	}
	if err := promptlayer.Check(promptlayer.Apply(has, layers)); err != nil {
		return badContext("%v", err)
	}
	return nil
}

// contextRequestsMax is how many requests a log may hold before it takes no further change of a context. The rest is
// for answers, cancels and limits.
const contextRequestsMax = activation.RequestsMax / 2

func checkRequestsLeft(at mailbox.Address, requests int) error {
	if requests < contextRequestsMax {
		return nil
	}
	return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the log of %s holds %d requests of clients, and the room for %d more is for answers and cancels", at, requests, activation.RequestsMax-contextRequestsMax),
		Hint: "change several layers by one request, or compute the prompt by a hook: docs/hooks.md"}
}

func badContext(format string, args ...any) error {
	return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf(format, args...), Hint: refuse.ContextHint}
}

// readContext returns the context of an agent, as its next request has it.
func (c *commander) readContext(ctx context.Context, r client.ContextRequest) (any, error) {
	if _, err := c.lookup.findRun(ctx, r.RunID); err != nil {
		return nil, err
	}
	id := spec.ID(r.Agent)
	if id == "" {
		full, err := c.states.Replay(ctx, c.cfg.Post, r.RunID)
		if err != nil {
			return nil, err
		}
		root, _ := full.State.Member(spec.Root)
		id = supervisor.HolderOf(full.State, root).ID
	}
	at, err := c.views.agentAddress(ctx, r.RunID, id)
	if err != nil {
		return nil, err
	}
	s, err := runlog.ReplayAgent(ctx, c.cfg.Post, at)
	if err != nil {
		return nil, err
	}
	if s.Task.ID == "" {
		return nil, runlog.ExplainNoAgent(ctx, c.cfg.Post, id, r.RunID)
	}
	return agentContext(s), nil
}

// agentContext is the context of an agent with the change that waits for its next request.
func agentContext(s agent.State) client.AgentContext {
	t := agent.NextTask(s)
	a := client.AgentContext{Agent: t.ID, Name: t.Name, Layers: promptlayer.Of(t), Tools: []string{}, Waiting: len(s.NextContext) > 0}
	for _, tool := range t.Tools {
		a.Tools = append(a.Tools, tool.Name)
	}
	slices.Sort(a.Tools)
	return a
}
