package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/orchestrator"
)

// Step is one agent's part in a run of several agents: the name of its definition, and its
// share of the task.
type Step = orchestrator.Step

// ErrPlan says that no node could execute a plan.
var ErrPlan = errors.New("client: not a plan")

// Delegate starts a run in which one agent gets the task, with the history that r begins
// with, and the agent's answer is the answer of the run. Like Chain and Consolidate it opens
// one durable run: all agents share one budget pool, and after the death of a node the run
// continues where it was. Delegate sets r.Agent and r.Prompt. Wait waits for the end.
func (c *Client) Delegate(ctx context.Context, r RunRequest, agent, task string) (RunAccepted, error) {
	return runPlan(ctx, c, r, orchestrator.Delegate, orchestrator.Plan{Task: task, Stages: []orchestrator.Stage{{{Agent: agent}}}})
}

// Chain starts a run in which the steps follow each other: each agent gets the task, its
// part, and the answer of the agent before it. A failing step ends the run, with the results
// so far, marked as partial.
func (c *Client) Chain(ctx context.Context, r RunRequest, task string, steps ...Step) (RunAccepted, error) {
	p := orchestrator.Plan{Task: task}
	for _, s := range steps {
		p.Stages = append(p.Stages, orchestrator.Stage{s})
	}
	return runPlan(ctx, c, r, orchestrator.Chain, p)
}

// Consolidate starts a run in which the parts are done in parallel, and last makes one answer
// of their answers; with a zero last the answers are concatenated. If a part fails, the
// answer says what is missing, and is marked as partial.
func (c *Client) Consolidate(ctx context.Context, r RunRequest, task string, last Step, parts ...Step) (RunAccepted, error) {
	p := orchestrator.Plan{Task: task, Stages: []orchestrator.Stage{slices.Clone(parts)}}
	if last != (Step{}) {
		p.Stages = append(p.Stages, orchestrator.Stage{last})
	}
	return runPlan(ctx, c, r, orchestrator.Consolidate, p)
}

// runPlan starts the run of a plan. The text form of the plan must parse to the same plan.
func runPlan(ctx context.Context, c *Client, r RunRequest, route string, p orchestrator.Plan) (RunAccepted, error) {
	p.Task = strings.TrimSpace(p.Task)
	for _, stage := range p.Stages {
		for i := range stage {
			stage[i].Part = strings.Join(strings.Fields(stage[i].Part), " ") // each step is one line
		}
	}
	r.Agent, r.Prompt = route, p.Text(route)
	for _, name := range p.AgentNames() {
		if !spec.IsAgentName(name) {
			return RunAccepted{}, fmt.Errorf("%w: %q is not the name of an agent", ErrPlan, name)
		}
	}
	again, ok := orchestrator.ParsePlan(route, r.Prompt)
	switch {
	case len(p.AgentNames()) == 0:
		return RunAccepted{}, fmt.Errorf("%w: it has no steps", ErrPlan)
	case p.Task == "":
		return RunAccepted{}, fmt.Errorf("%w: it has no task", ErrPlan)
	case !ok || again.Task != p.Task || !slices.EqualFunc(again.Stages, p.Stages, slices.Equal[orchestrator.Stage]):
		return RunAccepted{}, fmt.Errorf("%w: the task has lines that read as steps; put them into one line", ErrPlan)
	}
	return c.Run(ctx, r)
}
