package sim

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/model"
)

// backgroundJudge knows the background children of an agent, and the messages that it has not read.
type backgroundJudge struct {
	*watchedAgent
	away map[string]spec.ID // children in the background, by their calls
	mail []agent.Messaged   // received, and not yet in the transcript
	// handoffs watches what happens once the agent has handed off its conversation.
	handoffs *handoffJudge
}

// isIdle reports whether an agent waits for its background children or a message.
func isIdle(st *agent.State) bool { return st.Suspended.Why == agent.AwaitsOthers }

// checkBackground checks that an agent reads each peer message once, attributed to its sender, and that
// an agent that claims to be done has read all of them.
func (j *backgroundJudge) checkBackground(before, after *agent.State, f activation.Fact, out activation.Stepped) {
	a := j.actor
	running := before.Phase != "" && before.Phase != agent.Done
	switch {
	case f.Kind == "returned" && f.From != "":
		e := decodeFact[agent.Returned](j.population, f)
		for _, c := range before.Calls {
			if c.ID == e.Call && c.Child != "" && c.Stage == agent.Running && e.Live && c.Name != handoffTool {
				j.away[c.ID] = c.Child
				j.reach.hit(placeSentOff)
			}
		}
	case f.Kind == "messaged" && running:
		e := decodeFact[agent.Messaged](j.population, f)
		child := j.away[e.Call]
		if e.Call != "" && child == "" && j.population.super.damaged {
			break // the run lost the record of this message and sends it again; no agent is waited for
		}
		if e.Call != "" && child != e.From {
			j.fail(backgroundIsHeard, "%s hears of %s by call %s, and had sent off %q", a.id, e.From, e.Call, child)
		}
		delete(j.away, e.Call)
		j.mail = append(j.mail, e)
		if isIdle(before) && isIdle(after) {
			j.fail(backgroundIsHeard, "%s was told something by %s, and sits idle", a.id, e.From)
		}
	}
	j.checkDeclared(before, after, f)
	if j.handoffs.check(before, after, f, out) {
		j.mail = nil // it was passed on
	}
	j.checkMail(before, after)
	if slices.ContainsFunc(out.Messages, func(t activation.OutboxMessage) bool { return t.Kind == "propose_stop" }) && len(j.away) > 0 {
		j.fail(backgroundIsHeard, "%s proposes its end, and %d children of it work in the background", a.id, len(j.away))
	}
	if isIdle(after) && (len(j.away) == 0 || len(j.mail) > 0 || after.Cancel != nil || after.Soft) {
		j.fail(backgroundIsHeard, "%s sits idle: %s, %d away, %d unread", a.id, after.Phase, len(j.away), len(j.mail))
	}
	if running && after.Phase == agent.Done {
		j.checkLeftBehind(after)
	}
	j.judges.coverage.noteBackground(before, after, f)
}

// checkMail checks that each message enters the transcript once, in order, with every
// line of it quoted.
func (j *backgroundJudge) checkMail(before, after *agent.State) {
	a := j.actor
	if after.Phase == agent.Done {
		return
	}
	var told []model.Message
	for _, m := range after.History[min(max(len(before.History), after.Recalled), len(after.History)):] {
		if m.Role == model.User && strings.Contains(m.Text, byAgent) {
			told = append(told, m)
		}
	}
	if len(told) > len(j.mail) {
		j.fail(backgroundIsHeard, "%s reads %d messages of agents, %d were sent", a.id, len(told), len(j.mail))
	}
	for i, m := range told {
		head, text, _ := strings.Cut(m.Text, "\n")
		if !strings.Contains(head, string(j.mail[i].From)) || len(text) < len(j.mail[i].Text) {
			j.fail(backgroundIsHeard, "%s reads %q, and %s said %q", a.id, m.Text, j.mail[i].From, j.mail[i].Text)
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "> ") {
				j.fail(backgroundIsHeard, "%s reads a line of %s as if it were not its word: %q", a.id, j.mail[i].From, line)
			}
		}
	}
	j.mail = j.mail[len(told):]
	if len(j.mail) != len(after.Mail) {
		j.fail(backgroundIsHeard, "%s has %d messages to read, and keeps %d", a.id, len(j.mail), len(after.Mail))
	}
}

// byAgent marks text that agents wrote.
const byAgent = "An agent says this, not a person"

// checkLeftBehind checks that a successful end leaves no background child behind, and that any
// other end names the children that it cancels.
func (j *backgroundJudge) checkLeftBehind(after *agent.State) {
	a := j.actor
	o := after.Outcome
	if o.Reason == spec.Completed && len(j.away)+len(j.mail) > 0 {
		j.fail(backgroundIsHeard, "%s has completed, with %d children in the background and %d messages unread", a.id, len(j.away), len(j.mail))
	}
	for _, child := range j.away {
		j.reach.hit(placeTakenAlong)
		if !strings.Contains(o.Detail, string(child)) {
			j.fail(backgroundIsHeard, "%s ends (%s) and does not say that it takes %s with it: %q", a.id, o.Reason, child, o.Detail)
		}
	}
}
