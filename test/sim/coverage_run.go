package sim

import (
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// noteDrained notes that an activation drained in the middle of its work.
func (cov *coverage) noteDrained(sh *shell) {
	st := sh.actor.shadow.agent
	if st == nil || sh.state.Stage() != activation.Draining || sh.logReader().Phase != activation.Active || !sh.isCurrent() {
		return
	}
	switch st.State.Phase {
	case agent.Thinking:
		cov.reach.hit(placeHandedOverThinking)
	case agent.Acting:
		cov.reach.hit(placeHandedOverActing)
	}
}

// noteSupervisorStep notes where a step of the supervisor has been.
func (cov *coverage) noteSupervisorStep(before, after *supervisor.State, f activation.Fact, out activation.Stepped) {
	if f.Damaged {
		cov.reach.hit(placeDamagedByReport)
	}
	if (f.Kind == (agent.VerifyLog{}).Kind() || f.Kind == (agent.Reserve{}).Kind()) && !f.Damaged && before.Cancel == nil && after.Cancel != nil {
		cov.reach.hit(placeDamagedByReservation)
	}
	if after.Waiting() > before.Waiting() {
		cov.reach.hit(placeWaitQueue)
	}
	if after.Waiting() < before.Waiting() && after.Cancel != nil {
		cov.reach.hit(placeCancelInQueue)
	}
	if after.Pool.Overrun != before.Pool.Overrun {
		cov.reach.hit(placeOverrunBooked)
	}
	if after.Pool.Unknown != before.Pool.Unknown {
		cov.reach.hit(placeLostCharged)
	}
	for _, t := range out.Messages {
		switch t.Kind {
		case "denied":
			p := after.Pool
			free := p.Limit.Room(p.Spent.Plus(p.Held).Plus(p.Kept))
			cov.reach.hit(placeDeniedShort)
			if !p.Carved.Zero() {
				cov.reach.hit(placeDeniedCarved)
			}
			if free.Tokens == 0 || free.Nano == 0 {
				cov.reach.hit(placeDeniedAtZero)
			}
		case "stop_vetoed":
			cov.reach.hit(placeVetoes)
		case "canceled":
			if f.Kind == "finish" {
				cov.reach.hit(placeOrphanStopped)
			}
		case "returned":
			switch f.Kind {
			case "delegate":
				cov.noteRefused(t)
			case "send":
				cov.noteSent(t)
			}
		}
	}
}

// refusals distinguishes the rules by which a child is refused, by their texts.
// "this agent may not delegate" and "this agent may not hand off" are not among them: an agent without the right
// is not offered the tool, so no simulated run reaches that rule.
var refusals = []struct {
	words string
	place place
}{
	{"was canceled", placeRefusedCanceled}, {"this agent was stopped", placeRefusedCanceled}, {"this agent has ended", placeRefusedCanceled}, {"not delegated: the run is ending", placeRefusedCanceled}, {"not handed off: the run is ending", placeRefusedCanceled},
	{"not handed off: there is no agent", placeHandoffRefused}, {"may be handed off", placeHandoffsOut}, {"the task requires a result", placeHandoffRefused},
	{"there is no agent", placeRefusedUnknown},
	{"nested at most", placeRefusedDepth},
	{"live children", placeRefusedChildren},
	{"a run may have", placeRefusedAgents},
	{"budget does not cover", placeRefusedBudget},
	{"a provider billed", placeRefusedOverrun},
	{"budget is frozen", placeRefusedFrozen},
	{"schema of its own", placeRefusedSchema},
}

func (cov *coverage) noteRefused(t activation.OutboxMessage) {
	var e agent.Returned
	if err := mailbox.Unmarshal(t.Body, &e); err != nil {
		cov.fail(factsAreReadable, "returned: %v", err)
	}
	if e.Live || e.Outcome != nil {
		return
	}
	for _, r := range refusals {
		if strings.Contains(e.Text, r.words) {
			cov.reach.hit(r.place)
			return
		}
	}
	cov.fail(factsAreReadable, "a child is refused for a reason that nobody knows: %q", e.Text)
}

var rests = map[agent.Phase]place{agent.Reserving: placeRestReserving, agent.Acting: placeRestActing, agent.Waiting: placeRestWaiting}

// notePassivated notes which kind of actor has passivated.
func (cov *coverage) notePassivated(a *actor) {
	st := a.readStanding()
	switch {
	case !st.Rests:
		cov.reach.hit(placeRestInVain)
	case a.shadow.agent == nil:
		cov.reach.hit(placeRestSuper)
	default:
		now := &a.shadow.agent.State
		if p, ok := rests[now.Phase]; ok {
			cov.reach.hit(p)
		}
		if asksPerson(now) {
			cov.reach.hit(placeRestPerson)
		}
	}
}

// noteReactivated notes what reactivates a passivated actor.
func (cov *coverage) noteReactivated(a *actor) {
	if st := a.readStanding(); st.Rests {
		cov.reach.hit(placeWokenByClock)
	} else if w := a.shadow.agent; w != nil && w.State.Rested {
		cov.reach.hit(placeWokenByEntry)
		if w.State.Cancel != nil {
			cov.reach.hit(placeCancelResting)
		}
	}
}

// noteBackground notes the outcomes of background children and peer messages.
func (cov *coverage) noteBackground(before, after *agent.State, f activation.Fact) {
	hit := func(p place, so bool) {
		if so {
			cov.reach.hit(p)
		}
	}
	hit(placeSatIdle, isIdle(after) && !isIdle(before))
	hit(placeMailAtStop, f.Kind == "stop_allowed" && len(before.Mail) > 0 && after.Phase != agent.Done)
	if !isIdle(before) {
		return
	}
	woken := !isIdle(after) && after.Phase != agent.Done
	hit(placeIdleTakeover, f.Kind == "resumed")
	hit(placeIdleCanceled, f.Kind == "canceled" && after.Phase == agent.Done)
	hit(placeIdleSteered, f.Kind == "steered" && woken)
	hit(placeWokenByAnswer, f.Kind == "messaged" && woken && decodeFact[agent.Messaged](cov.population, f).Call != "")
	hit(placeWokenByMessage, f.Kind == "messaged" && woken && decodeFact[agent.Messaged](cov.population, f).Call == "")
}

// unsent distinguishes the reasons why a message was not sent, by the words of the refusal.
var unsent = []struct {
	words string
	place place
}{
	{"sent to", placeMessageSent}, {"has finished", placeMessageToEnded}, {"may send", placeMessagesOut}, {"the run was canceled", placeMessageCanceled}, {"this agent was stopped", placeMessageCanceled}, {"the run is ending", placeMessageCanceled}, {"this agent has ended", placeMessageCanceled},
	{"there is no agent", placeMessageToNobody}, {"several agents", placeMessageToNobody}, {"yourself", placeMessageToNobody}, {"no parent", placeMessageToNobody},
}

func (cov *coverage) noteSent(t activation.OutboxMessage) {
	var e agent.Returned
	if err := mailbox.Unmarshal(t.Body, &e); err != nil {
		cov.fail(factsAreReadable, "returned: %v", err)
	}
	for _, r := range unsent {
		if strings.Contains(e.Text, r.words) {
			cov.reach.hit(r.place)
			return
		}
	}
	cov.fail(factsAreReadable, "a message is refused for a reason that nobody knows: %q", e.Text)
}
