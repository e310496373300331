package client

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model/plan"
)

// Step is an agent's part in a run of several: the name of its definition, and
// what it is to do of the task.
type Step = plan.Step

// ErrPlan: a plan that no node could follow.
var ErrPlan = errors.New("client: not a plan")

// Delegate starts a run in which one agent gets the task, with the history that
// r begins with, and its answer is the run's. Like Chain and Consolidate it
// opens one durable run: one pool for all agents, and a node that dies goes on
// where it was. r.Agent and r.Prompt are set by it. Wait waits for the end.
func (c *Client) Delegate(ctx context.Context, r RunRequest, agent, task string) (RunAccepted, error) {
	return c.follow(ctx, r, plan.Delegate, plan.Plan{Task: task, Stages: []plan.Stage{{{Agent: agent}}}})
}

// Chain starts a run in which the steps follow each other: each agent gets the
// task, its part, and what the one before it answered. A step that fails ends
// it, with what there is, marked as partial.
func (c *Client) Chain(ctx context.Context, r RunRequest, task string, steps ...Step) (RunAccepted, error) {
	p := plan.Plan{Task: task}
	for _, s := range steps {
		p.Stages = append(p.Stages, plan.Stage{s})
	}
	return c.follow(ctx, r, plan.Chain, p)
}

// Consolidate starts a run in which the parts are done side by side, and last
// makes one answer of theirs; with a zero last the answers are joined. What a
// part could not bring is said in the answer, which is then marked as partial.
func (c *Client) Consolidate(ctx context.Context, r RunRequest, task string, last Step, parts ...Step) (RunAccepted, error) {
	p := plan.Plan{Task: task, Stages: []plan.Stage{slices.Clone(parts)}}
	if last != (Step{}) {
		p.Stages = append(p.Stages, plan.Stage{last})
	}
	return c.follow(ctx, r, plan.Consolidate, p)
}

var stepName = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// follow starts the run of a plan. What it becomes as text must be the same plan.
func (c *Client) follow(ctx context.Context, r RunRequest, route string, p plan.Plan) (RunAccepted, error) {
	p.Task = strings.TrimSpace(p.Task)
	for _, stage := range p.Stages {
		for i := range stage {
			stage[i].Part = strings.Join(strings.Fields(stage[i].Part), " ") // a step is a line
		}
	}
	r.Agent, r.Prompt = route, p.Text(route)
	for _, name := range p.Agents() {
		if !stepName.MatchString(name) {
			return RunAccepted{}, fmt.Errorf("%w: %q is no agent's name", ErrPlan, name)
		}
	}
	again, ok := plan.Parse(route, r.Prompt)
	switch {
	case len(p.Agents()) == 0:
		return RunAccepted{}, fmt.Errorf("%w: it has no steps", ErrPlan)
	case p.Task == "":
		return RunAccepted{}, fmt.Errorf("%w: it has no task", ErrPlan)
	case !ok || again.Task != p.Task || !slices.EqualFunc(again.Stages, p.Stages, slices.Equal[plan.Stage]):
		return RunAccepted{}, fmt.Errorf("%w: the task has lines that read as steps; put them into one line", ErrPlan)
	}
	return c.Run(ctx, r)
}
