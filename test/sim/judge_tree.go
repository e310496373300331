package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// treeJudge checks the tree of agents: their beginnings, their rights and their ends.
type treeJudge struct {
	*environment
	population *population
	coverage   *coverage
	stopping   map[spec.ID]bool      // canceled by name
	vetoes     map[spec.ID]int       // in a row
	tasks      map[spec.ID]spec.Task // as the supervisor sent them
}

func newTreeJudge(p *population, c *coverage) *treeJudge {
	return &treeJudge{environment: p.environment, population: p, coverage: c,
		stopping: map[spec.ID]bool{}, vetoes: map[spec.ID]int{}, tasks: map[spec.ID]spec.Task{}}
}

// checkChildAnswer checks that a parent reads its child's answer after the child has ended.
func (j *treeJudge) checkChildAnswer(a *actor, before agent.State, after *agent.State, f activation.Fact) {
	e := decodeFact[agent.Returned](j.population, f)
	for i, c := range before.Calls {
		if c.ID == e.Call && c.Stage == agent.Running && c.Attempt != e.Attempt {
			if len(after.Calls) <= i || after.Calls[i].Stage != agent.Running {
				j.fail(childrenAnswerAfterTheirEnd, "%s: call %s, attempt %d, is answered by attempt %d", a.id, c.ID, c.Attempt, e.Attempt)
			}
		}
		if c.ID != e.Call || c.Child == "" || c.Stage != agent.Running || f.From == "" || e.Live {
			continue
		}
		child := j.population.byAddr[mailbox.At(runName, string(c.Child))]
		if child == nil || child.damaged || child.closed {
			continue
		}
		m, _ := j.population.super.shadow.super.State.Member(c.Child)
		if m.Outcome.Reason == spec.Timeout && m.Outcome.Detail == "no sign of life" {
			j.reach.hit(placeGivenUp)
			continue
		}
		if st := child.shadow.agent.State; st.Phase != agent.Done && m.ID != "" {
			j.fail(childrenAnswerAfterTheirEnd, "%s reads the answer of %s, which is %s", a.id, c.Child, st.Phase)
		}
	}
	j.coverage.noteReturned(before, after, e, f)
}

// checkSpawn checks that the limits of the tree hold, and that no agent is spawned below a dead one.
func (j *treeJudge) checkSpawn(after *supervisor.State, id spec.ID) {
	m, _ := after.Member(id)
	l := after.Run.Limits
	if after.Count() > l.Agents && !j.isOn(faultLimits) {
		j.fail(treeStaysWithinLimits, "%d agents, %d are allowed", after.Count(), l.Agents)
	}
	j.checkHandoff(after, m)
	// One that takes over lives as deep as its predecessor, also if the limit was lowered since.
	if m.Depth >= l.Depth && id != spec.Root && (m.Handoffs == 0 || !j.isOn(faultLimits)) {
		j.fail(treeStaysWithinLimits, "%s lives %d deep, %d are allowed", id, m.Depth, l.Depth)
	}
	if id == spec.Root {
		return
	}
	parent, ok := after.Member(m.Parent)
	for up := parent; ok; up, ok = after.Member(up.Parent) {
		if up.Done {
			j.fail(nothingAfterCancel, "%s begins, and %s above it has ended", id, up.ID)
		}
		if j.stopping[up.ID] && !j.population.super.damaged {
			j.fail(nothingAfterCancel, "%s begins after the cancel of %s above it", id, up.ID)
		}
	}
	live := 0
	after.Members(func(c supervisor.Member) {
		if c.Parent == parent.ID && c.ID != spec.Root && !c.Done {
			live++
		}
	})
	if live > l.Children || live != parent.Children {
		j.fail(treeStaysWithinLimits, "%s has %d live children (it says %d), %d are allowed", parent.ID, live, parent.Children, l.Children)
	}
}

// checkRights compares the task of a child with the task of its parent: it has no
// tool, no way past a hook and no way out of a deny that its parent does not have.
func (j *treeJudge) checkRights(after *supervisor.State, id spec.ID, t activation.OutboxMessage) {
	var f agent.Submitted
	if err := mailbox.Unmarshal(t.Body, &f); err != nil {
		j.fail(factsAreReadable, "submitted: %v", err)
	}
	j.tasks[id] = f.Task
	c, _ := after.Member(id)
	if schema := j.tasks[c.Parent].LoopOptions.Require.Schema; c.Handoffs > 0 && schema != "" && f.Task.LoopOptions.Require.Schema != schema {
		j.fail(rightsShrink, "%s answers in the place of %s by another schema", id, c.Parent)
	}
	p, born := after.Member(c.Parent)
	if id == spec.Root || !born {
		return
	}
	for _, right := range c.Rights {
		if !slices.Contains(p.Rights, right) {
			j.fail(rightsShrink, "%s may use %s, and its parent may not", id, right)
		}
	}
	for _, denied := range p.Deny {
		if !slices.Contains(c.Deny, denied) {
			j.fail(rightsShrink, "%s is not denied %s, and its parent is", id, denied)
		}
	}
	for _, h := range j.tasks[c.Parent].LoopOptions.Hooks {
		if c.Handoffs > 0 && h.Point == spec.HookStop && !slices.Contains(f.Task.LoopOptions.Hooks, h) {
			j.fail(rightsShrink, "the stop hook %s of %s does not judge the answer of %s, which is its own", h.Name, c.Parent, id)
		}
		about := h.Point == spec.HookContext || h.Point == spec.HookStop || h.Point == spec.HookStopFailure || h.Of == spec.OfRoot
		if !about && !slices.Contains(f.Task.LoopOptions.Hooks, h) {
			j.fail(rightsShrink, "the hook %s at %s binds %s and not its child %s", h.Name, h.Point, c.Parent, id)
		}
	}
}

// checkVetoes checks that vetoes in a row are bounded.
func (j *treeJudge) checkVetoes(t activation.OutboxMessage) {
	id := spec.ID(t.To.Agent())
	var v agent.StopVetoed
	if t.Kind == "stop_allowed" {
		j.vetoes[id] = 0
		return
	}
	if err := mailbox.Unmarshal(t.Body, &v); err != nil {
		j.fail(factsAreReadable, "stop_vetoed: %v", err)
	}
	if j.vetoes[id]++; j.vetoes[id] > spec.VetoesMax && !v.Final {
		j.fail(vetoesAreBounded, "%s is vetoed %d times in a row", id, j.vetoes[id])
	}
}

// checkEnds checks that the run remembers a cancel of a named agent, and that an agent that
// ends cancels its children.
func (j *treeJudge) checkEnds(before, after *supervisor.State, f activation.Fact, out activation.Stepped) {
	if f.Kind == "canceled" {
		if e := decodeFact[agent.Canceled](j.population, f); e.Of != "" {
			after.Members(func(m supervisor.Member) {
				if m.ID == e.Of && !m.Done {
					j.stopping[m.ID] = true
				}
			})
		}
	}
	if before.Live <= after.Live {
		return
	}
	after.Members(func(m supervisor.Member) {
		was, _ := before.Member(m.ID)
		if !m.Done || was.Done {
			return
		}
		if f.Kind == "woke" && after.Now < was.FirstMessageDue {
			j.fail(timersCount, "%s is given up too early", m.ID)
		}
		after.Members(func(c supervisor.Member) {
			told := slices.ContainsFunc(out.Messages, func(t activation.OutboxMessage) bool {
				return t.Kind == "canceled" && t.To.Agent() == string(c.ID)
			})
			if c.Parent == m.ID && !c.Done && !told {
				j.fail(treeStaysWithinLimits, "%s has ended, and its child %s goes on", m.ID, c.ID)
			}
		})
	})
}
