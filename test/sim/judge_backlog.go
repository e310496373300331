package sim

import (
	"cmp"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/supervisor"
)

// claimsMax is how many tasks one agent may have, as the judge reads the rule.
const claimsMax = 8

// backlogJudge checks that no task is lost, that each is done once, by the agent that has it, and that an
// agent gets a task of another one only if the lease of that one has ended: it counts leases by itself,
// from the messages of agents.
type backlogJudge struct {
	population *population
	heard      map[spec.ID]int64 // the newest message of an agent
	since      int64             // the newest activation with no actor at rest
	rested     bool
	posts      map[callKey]int
}

func newBacklogJudge(p *population) *backlogJudge {
	return &backlogJudge{population: p, heard: map[spec.ID]int64{}, posts: map[callKey]int{}}
}

// noteFact checks the tasks after a step of the supervisor.
func (j *backlogJudge) noteFact(before, after *supervisor.State, f activation.Fact, out activation.Stepped) {
	who := spec.ID(f.From.Agent())
	switch f.Kind {
	case "resumed":
		if !j.rested {
			j.since = after.Now
		}
		j.rested = false
	case "released":
		j.rested = decodeFact[agent.Released](j.population, f).Rests
	case "status", "report_log":
	default:
		j.heard[who] = after.Now
	}
	if j.population.super.damaged || !j.population.isOn(faultBacklog) {
		return
	}
	var call agent.Backlog
	if f.Kind == call.Kind() {
		call = decodeFact[agent.Backlog](j.population, f)
		j.checkAnswered(before, after, who, call, out)
	}
	was, is := supervisor.BacklogOf(*before, 0), supervisor.BacklogOf(*after, 0)
	if len(is) < len(was) || len(is) > len(was)+1 {
		j.population.fail(backlogHasOneOwner, "the backlog has %d tasks, and had %d", len(is), len(was))
	}
	held := map[spec.ID]int{}
	for i, t := range is {
		var old event.BacklogTask
		if i < len(was) {
			old = was[i]
		}
		j.checkTask(old, t, who, call)
		j.checkClaim(after, old, t, call)
		if isHeld(t) {
			held[t.Agent]++
		}
	}
	for id, n := range held {
		if m, ok := after.Member(id); !ok || m.Done || m.HandedTo != "" || n > claimsMax {
			j.population.fail(backlogHasOneOwner, "%s has %d tasks of the backlog; done: %v, handed to %q", id, n, m.Done, m.HandedTo)
		}
	}
	j.noteEnds(was, is, before, after)
}

// isHeld reports whether an agent has a task, whether its lease goes on or not.
func isHeld(t event.BacklogTask) bool {
	return t.Agent != "" && (t.State == "claimed" || t.State == "open")
}

// checkTask checks what happens to one task. old is empty for a new one.
func (j *backlogJudge) checkTask(old, t event.BacklogTask, who spec.ID, call agent.Backlog) {
	p := j.population
	switch {
	case old.Task == "" && (t.State != "open" || t.Agent != ""):
		p.fail(backlogHasOneOwner, "%s is new and %s", t.Task, t.State)
	case old.Task == "":
		p.reach.hit(placeBacklogPosted)
	case t.Title != old.Title || t.PostedBy != old.PostedBy || t.By != old.By:
		p.fail(backlogHasOneOwner, "%s is %q now, and was %q", t.Task, t.Title, old.Title)
	case old.State == "done" && (t.State != "done" || t.Agent != old.Agent || t.Result != old.Result):
		p.fail(backlogHasOneOwner, "%s was done by %s, and is %s by %s", t.Task, old.Agent, t.State, t.Agent)
	case old.State == "dropped" && t.State != "dropped":
		p.fail(backlogHasOneOwner, "%s was dropped, and is %s", t.Task, t.State)
	case t.State == "dropped" && old.State != "dropped":
		p.reach.hit(placeBacklogDropped)
	case t.State == "done" && old.State != "done" && (!isHeld(old) || old.Agent != who || call.Do != "done"):
		p.fail(backlogHasOneOwner, "%s is done by %q (%s), and %q had it", t.Task, who, call.Do, old.Agent)
	case t.State == "done" && old.State != "done":
		p.reach.hit(placeBacklogDone)
	}
}

// checkClaim checks which agent has a task.
func (j *backlogJudge) checkClaim(after *supervisor.State, old, t event.BacklogTask, call agent.Backlog) {
	if !isHeld(t) || isHeld(old) && old.Agent == t.Agent {
		return
	}
	p := j.population
	if call.Do != "claim" {
		p.fail(backlogHasOneOwner, "%s has %s, and nobody has claimed it", t.Agent, t.Task)
	}
	if !isHeld(old) {
		p.reach.hit(placeBacklogClaimed)
		return
	}
	end := max(j.heard[old.Agent], j.since) + cmp.Or(after.Run.Limits.LeaseMS, spec.LeaseDefaultMS)
	if end > after.Now {
		p.fail(backlogHasOneOwner, "%s gets %s of %s at %d, whose lease ends at %d", t.Agent, t.Task, old.Agent, after.Now, end)
	}
	p.reach.hit(placeBacklogLeaseEnded)
}

// checkAnswered checks that a call is answered once, and that no task is posted for a call that is sent again.
func (j *backlogJudge) checkAnswered(before, after *supervisor.State, who spec.ID, call agent.Backlog, out activation.Stepped) {
	m, known := before.Member(who)
	if !known {
		return
	}
	answers := 0
	for _, t := range out.Messages {
		if t.Kind == "returned" && spec.ID(t.To.Agent()) == who {
			answers++
			j.checkGiven(after, who, decodeFact[agent.Returned](j.population, activation.Fact{Kind: t.Kind, Body: t.Body}))
		}
	}
	if !m.Done && answers != 1 {
		j.population.fail(backlogHasOneOwner, "%s asks for %s of the backlog and is answered %d times", who, call.Do, answers)
	}
	key := callKey{who, call.Call, 0}
	if j.posts[key]++; j.posts[key] > 1 && !j.population.anyDamaged() {
		j.population.fail(backlogHasOneOwner, "%s sends call %s of the backlog again", who, call.Call)
	}
}

// checkGiven checks that an agent that is given a task has it.
func (j *backlogJudge) checkGiven(after *supervisor.State, who spec.ID, answer agent.Returned) {
	task, _, given := strings.Cut(answer.Text, " is yours")
	if !given || answer.Error {
		return
	}
	for _, t := range supervisor.BacklogOf(*after, 0) {
		if t.Task == task && !(isHeld(t) && t.Agent == who) {
			j.population.fail(backlogHasOneOwner, "%s is given %s, which is %s by %q", who, task, t.State, t.Agent)
		}
	}
}

// noteEnds checks that the tasks of an agent that ends are open again.
func (j *backlogJudge) noteEnds(was, is []event.BacklogTask, before, after *supervisor.State) {
	for i, old := range was {
		m, _ := after.Member(old.Agent)
		b, _ := before.Member(old.Agent)
		if isHeld(old) && m.Done && !b.Done {
			if t := is[i]; t.State != "open" || t.Agent != "" {
				j.population.fail(backlogHasOneOwner, "%s has ended, and its task %s is %s by %q", m.ID, t.Task, t.State, t.Agent)
			}
			j.population.reach.hit(placeBacklogReleased)
		}
	}
}
