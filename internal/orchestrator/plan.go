// Package orchestrator is orchestration without a model: clients that delegate a task
// to named agents one after the other (builtin/chain), in parallel
// (builtin/consolidate), or to one (builtin/delegate), and pass on their
// answers. They are rules behind model.Client: a plan is a run like any other,
// with one pool, durable, and observed through the same events.
//
// The plan is the prompt. One line names the agents and the task:
//
//	historian > auditor > writer: Look at this directory.
//	historian, auditor > writer: Look at this directory.
//
// or the task comes first, and each step has a line with its part of the task:
//
//	Look at this directory.
//	- historian: who wrote it?
//	- auditor
//	=> writer: one page, for people in a hurry
//
// In a chain the steps follow each other. Otherwise they run in parallel, and
// the agent after ">" or "=>" gets all their answers; without it the answers
// are joined.
//
// A client keeps no state: it reads the progress of a plan from the request, so
// a run continues after a crash where it stopped.
package orchestrator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/model"
)

// Plan is a task and the stages that carry it out.
type Plan struct {
	Task   string
	Stages []Stage // one after the other; each gets the answers of the one before
}

// Stage holds the steps that run in parallel.
type Stage []Step

// Step is one agent's part.
type Step struct {
	Agent string
	Part  string // the agent's part of the task; "": all of it
}

// Limits of a plan.
const (
	StepsMax = 32 // of a stage, and stages of a plan
)

const agentName = `[a-z0-9_-]+`

var (
	stepLine      = lazyregexp.New(`^\s*(-|\*|=>)\s+(` + agentName + `)\s*(?::\s*(.*))?$`)
	oneLine       = lazyregexp.New(`(?s)^\s*(` + agentName + `(?:\s*[,>]\s*` + agentName + `)*)\s*:\s+(.*\S)\s*$`)
	stepSeparator = lazyregexp.New(`[,>]`)
)

// ParsePlan reads a plan for a route (Chain, Consolidate or Delegate). ok is false
// for a text that names no agents.
func ParsePlan(route, text string) (p Plan, ok bool) {
	var steps, last []Step
	var task []string
	for line := range strings.Lines(text) {
		m := stepLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		switch {
		case m == nil:
			task = append(task, line)
		case m[1] == "=>":
			last = append(last, Step{m[2], strings.TrimSpace(m[3])})
		default:
			steps = append(steps, Step{m[2], strings.TrimSpace(m[3])})
		}
	}
	p.Task = strings.TrimSpace(strings.Join(task, ""))
	if len(steps) == 0 && len(last) == 0 {
		m := oneLine.FindStringSubmatch(text)
		if m == nil {
			return Plan{}, false
		}
		p.Task = m[2]
		before, behind, _ := strings.Cut(m[1], ">")
		if route == Chain {
			before, behind = m[1], ""
		}
		steps, last = splitSteps(before), splitSteps(behind)
	}
	if route == Chain {
		for _, s := range slices.Concat(steps, last) {
			p.Stages = append(p.Stages, Stage{s})
		}
		return p, true
	}
	if len(steps) > 0 {
		p.Stages = append(p.Stages, steps)
	}
	for _, s := range last {
		p.Stages = append(p.Stages, Stage{s})
	}
	return p, true
}

func splitSteps(list string) []Step {
	var steps []Step
	for _, name := range stepSeparator.Split(list, -1) {
		if name = strings.TrimSpace(name); name != "" {
			steps = append(steps, Step{Agent: name})
		}
	}
	return steps
}

// Text formats the plan so that ParsePlan reads it for a route.
func (p Plan) Text(route string) string {
	var b strings.Builder
	b.WriteString(p.Task)
	for i, stage := range p.Stages {
		mark := "-"
		if i > 0 && route != Chain {
			mark = "=>"
		}
		for _, s := range stage {
			fmt.Fprintf(&b, "\n%s %s", mark, s.Agent)
			if s.Part != "" {
				b.WriteString(": " + strings.Join(strings.Fields(s.Part), " "))
			}
		}
	}
	return b.String()
}

// AgentNames returns the names in the plan, each once, in order.
func (p Plan) AgentNames() []string {
	var names []string
	for _, s := range slices.Concat(p.Stages...) {
		if !slices.Contains(names, s.Agent) {
			names = append(names, s.Agent)
		}
	}
	return names
}

// explainInvalid explains why a plan cannot be followed.
func (p Plan) explainInvalid() string {
	switch {
	case strings.TrimSpace(p.Task) == "":
		return "the plan has no task"
	case len(p.Stages) > StepsMax || slices.ContainsFunc(p.Stages, func(s Stage) bool { return len(s) > StepsMax }):
		return fmt.Sprintf("the plan has more than %d steps", StepsMax)
	}
	return ""
}

// stepAnswer is the result of a step.
type stepAnswer struct {
	Step
	text    string
	failed  bool // there is no answer; text says why
	partial bool
	done    bool
}

// partialMark is the supervisor's mark on the answer of a child that was cut short.
const partialMark = "[stopped early: "

// readProgress determines the progress of a plan: one reply with calls for each stage.
func readProgress(p Plan, messages []model.Message) [][]stepAnswer {
	var all [][]stepAnswer
	for i, m := range messages {
		if m.Tombstone || m.Role != model.Assistant || len(m.Calls) == 0 || len(all) == len(p.Stages) {
			continue
		}
		results := map[string]model.ToolResult{}
		if i+1 < len(messages) {
			for _, r := range messages[i+1].Results {
				results[r.Call] = r
			}
		}
		stage := make([]stepAnswer, len(p.Stages[len(all)]))
		for j, s := range p.Stages[len(all)] {
			stage[j] = stepAnswer{Step: s}
			if j < len(m.Calls) {
				if r, ok := results[m.Calls[j].ID]; ok {
					stage[j] = stepAnswer{Step: s, text: r.Text, failed: r.Error, partial: strings.HasPrefix(r.Text, partialMark), done: true}
				}
			}
		}
		all = append(all, stage)
	}
	return all
}
