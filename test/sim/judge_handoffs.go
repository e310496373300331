package sim

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	handoffTool   = "handoff"
	handoffsEvery = 6 // which of the seeds have handoffs: see permissionsEvery
)

// drawHandoffs lets agents of the run hand off their conversations.
func drawHandoffs(d dice, o *supervisor.Opened) {
	o.Tools = append(slices.Clip(o.Tools), agent.HandoffSpec())
	o.Definitions[0].Handoffs = []string{"hand", "shy", "clerk"}
	o.Definitions[1].Handoffs = []string{"lead", "clerk"}
	o.Definitions[3].Handoffs = []string{"lead", "hand"}
	o.Agent.Handoffs = oneOf(d, 0, 0, 0, 1, 2, spec.Off)
}

// handoffOdds is how often a reply hands off: more often where the conversation was handed off already.
func handoffOdds(r *job) int {
	if t := &r.shell.state.Agent.State.Task; t.Parent != "" && t.Depth == 0 {
		return 90
	}
	return 45
}

// drawHandoff is a call that hands off the conversation, mostly to an agent that the request names.
func (fm *fakeModel) drawHandoff(r *job) model.ToolCall {
	to := oneOf(fm.dice, "hand", "lead", "shy", "clerk")
	i := slices.IndexFunc(r.request.Tools, func(t model.ToolSpec) bool { return t.Name == handoffTool })
	if i >= 0 && fm.percent(90) {
		_, names, _ := strings.Cut(r.request.Tools[i].Schema, `"enum":[`)
		names, _, _ = strings.Cut(names, "]")
		to = strings.Trim(oneOf(fm.dice, strings.Split(names, ",")...), `"`)
	}
	return model.ToolCall{Name: handoffTool, Args: `{"agent":"` + to + `","message":"go on"}`}
}

// handoffJudge knows whether an agent has handed off its conversation, and to whom.
type handoffJudge struct {
	*watchedAgent
	call string
	to   spec.ID
}

// check checks that an agent that has handed off asks for nothing more, passes on what reaches it, and ends as the
// other agent has. It reports whether the agent has handed off.
func (j *handoffJudge) check(before, after *agent.State, f activation.Fact, out activation.Stepped) bool {
	j.noteAccepted(before, f)
	for _, c := range after.Calls {
		if c.Name == handoffTool && len(after.Calls) > 1 {
			if c.Stage != agent.Ended {
				j.fail(handoffsAreClean, "%s hands off beside %d other calls", j.actor.id, len(after.Calls)-1)
			}
			j.reach.hit(placeHandoffBesideCalls)
		}
	}
	if j.call == "" {
		return false
	}
	for _, t := range out.Messages {
		switch t.Kind {
		case "reserve", "propose_stop", "delegate":
			j.fail(handoffsAreClean, "%s sends %s, and has handed off its conversation to %s", j.actor.id, t.Kind, j.to)
		}
	}
	if slices.ContainsFunc(out.Effects, func(e any) bool { _, calls := e.(agent.CallModel); return calls }) {
		j.fail(handoffsAreClean, "%s calls its model, and has handed off its conversation to %s", j.actor.id, j.to)
	}
	open := slices.ContainsFunc(after.Calls, func(c agent.Call) bool { return c.ID == j.call && c.Stage == agent.Running })
	passed := slices.ContainsFunc(out.Messages, func(t activation.OutboxMessage) bool { return t.Kind == f.Kind })
	switch {
	case !open:
	case f.Kind == "resumed" && before.Activation != "":
		j.reach.hit(placeHandoffTakeover)
	case f.Kind == "canceled":
		j.reach.hit(placeHandoffCanceled)
	case (f.Kind == "steered" || f.Kind == "messaged") && !passed:
		j.fail(handoffsAreClean, "%s keeps a message, and has handed off its conversation to %s", j.actor.id, j.to)
	case f.Kind == "steered":
		j.reach.hit(placeHandoffPassedOn)
	}
	if open && len(after.PendingSteers)+len(after.Mail) > 0 {
		j.fail(handoffsAreClean, "%s keeps %d messages, and has handed off its conversation to %s", j.actor.id, len(after.PendingSteers)+len(after.Mail), j.to)
	}
	if after.Phase == agent.Done && before.Phase != agent.Done {
		j.checkEnd(after)
	}
	return open
}

// laterHistory is the history of the agent that has the conversation; nil: the agent itself has it.
func (j *handoffJudge) laterHistory() []model.Message {
	a := j.population.byAddr[mailbox.At(runName, string(j.to))]
	if j.call == "" || a == nil || a.shadow.agent == nil {
		return nil
	}
	return a.shadow.agent.State.History
}

// noteAccepted notes that the supervisor has accepted a handoff.
func (j *handoffJudge) noteAccepted(before *agent.State, f activation.Fact) {
	if f.Kind != "returned" || f.From == "" {
		return
	}
	e := decodeFact[agent.Returned](j.population, f)
	for _, c := range before.Calls {
		if c.ID != e.Call || c.Name != handoffTool || c.Stage != agent.Running || !e.Live {
			continue
		}
		j.call, j.to = c.ID, c.Child
		j.reach.hit(placeHandedOff)
		if len(before.Task.Parent) > 0 && before.Task.Depth == 0 {
			j.reach.hit(placeHandedOn)
		}
	}
}

// checkEnd compares the end of an agent with that of the agent that had its conversation. What hooks said about the
// answer counts, and so does an end for another reason than a person's.
func (j *handoffJudge) checkEnd(after *agent.State) {
	super := j.population.super
	m, known := super.shadow.super.State.Member(j.to)
	if !known || !m.Done || super.damaged || after.Cancel != nil || after.Outcome.Reason == spec.LogDamaged || after.Outcome.Reason == spec.ResumeUnsafe {
		return
	}
	o := after.Outcome
	if judged := len(after.Task.LoopOptions.Hooks) > 0; judged && o.Reason == spec.Guardrail || judged && o.Text != m.Outcome.Text {
		return
	}
	if o.Reason != m.Outcome.Reason || o.Partial != m.Outcome.Partial || o.Text != m.Outcome.Text {
		j.fail(handoffsAreClean, "%s ends %s with %q, and %s, which had its conversation, ended %s with %q", j.actor.id, o.Reason, o.Text, j.to, m.Outcome.Reason, m.Outcome.Text)
	}
}

// checkHandoff checks that a member that takes over may do so, and that handoffs are limited.
func (j *treeJudge) checkHandoff(after *supervisor.State, m supervisor.Member) {
	if m.Handoffs == 0 {
		return
	}
	caller, _ := after.Member(m.Parent)
	i := slices.IndexFunc(after.Run.Definitions, func(d supervisor.Definition) bool { return d.Name == caller.Name })
	if i < 0 || !slices.Contains(after.Run.Definitions[i].Handoffs, m.Name) {
		j.fail(handoffsAreClean, "%s hands off to %s, and may not", caller.ID, m.Name)
	}
	if most := after.Run.Agent.HandoffsInAll(); m.Handoffs > most {
		j.fail(handoffsAreClean, "a conversation is handed off %d times, %d are allowed", m.Handoffs, most)
	}
	if m.Depth != caller.Depth {
		j.fail(handoffsAreClean, "%s takes over at depth %d from %s at depth %d", m.ID, m.Depth, caller.ID, caller.Depth)
	}
}

// checkHistory checks that an agent that takes over begins with a history.
func (j *treeJudge) checkHistory(after *supervisor.State, t activation.OutboxMessage, told []activation.OutboxMessage) {
	m, _ := after.Member(spec.ID(t.To.Agent()))
	if m.Handoffs == 0 {
		return
	}
	for _, other := range told {
		var f agent.Recalled
		if other.Kind != "recalled" || other.To != t.To || mailbox.Unmarshal(other.Body, &f) != nil || len(f.Messages) == 0 || f.Messages[0].Role != model.User {
			continue
		}
		caller := j.population.byAddr[mailbox.At(runName, string(m.Parent))]
		left := 0
		for _, o := range caller.shadow.agent.State.Obstacles {
			if o.Target != "tool "+handoffTool { // the handoff makes up for one that was denied before
				left++
			}
		}
		if left > 0 && len(f.Obstacles) == 0 && !caller.damaged {
			j.fail(handoffsAreClean, "%s takes over and does not hear of %d obstacles of %s", m.ID, left, m.Parent)
		}
		return
	}
	j.fail(handoffsAreClean, "%s takes over without a history", m.ID)
}
