package sim

import (
	"bytes"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// futuresJudge steps several futures from one state, which must not affect each other.
type futuresJudge struct{ *environment }

// futureLease is a number that no run comes to.
const futureReservation = 1000

// futuresEvery is how often two futures are stepped from one state.
const futuresEvery = 18

// checkAgent steps two more futures from the state before a step and one
// from the state after it: none may change the state of another.
func (j *futuresJudge) checkAgent(before, after agent.State, f activation.Fact) {
	if j.step%futuresEvery != 0 {
		return
	}
	j.checkFutures(before, f)
	j.checkFutures(after, f)
}

func (j *futuresJudge) checkFutures(from agent.State, f activation.Fact) {
	was := canonAgent(nil, &from)
	facts := possibleFacts(from)
	type future struct {
		state   agent.State
		effects []agent.Effect
		form    []byte
	}
	var seen []future
	for _, fact := range facts {
		next, stepped := agent.Step(from, agent.Input{N: f.N, At: from.Now, Activation: from.Activation, Fact: fact})
		seen = append(seen, future{next, stepped.Effects, canonEffects(canonAgent(nil, &next), stepped.Effects)})
		// One step further, so that two futures grow from one transcript.
		agent.Step(next, agent.Input{N: f.N + 1, At: from.Now, Activation: from.Activation, Fact: agent.Canceled{Why: "later", Now: true}})
	}
	for i, x := range seen {
		if !bytes.Equal(x.form, canonEffects(canonAgent(nil, &x.state), x.effects)) {
			j.fail("a future of %s in %s (%s) was changed by another", from.Task.ID, from.Phase, facts[i].Kind())
		}
	}
	for _, fact := range staleFacts(from) {
		next, stepped := agent.Step(from, agent.Input{N: f.N, At: from.Now, Activation: from.Activation, Fact: fact})
		if len(stepped.Effects) > 0 || !bytes.Equal(was, canonAgent(nil, &next)) {
			j.fail("%s in %s takes the answer to another question: %+v", from.Task.ID, from.Phase, fact)
		}
	}
	if !bytes.Equal(was, canonAgent(nil, &from)) {
		j.fail("a step changed the state of %s that it was given", from.Task.ID)
	}
}

// possibleFacts are facts that mean something in a state, in pairs that differ.
func possibleFacts(st agent.State) []agent.Fact {
	list := []agent.Fact{agent.Steered{Text: "this"}, agent.Steered{Text: "that"}, agent.Steered{Text: "this", Now: true}, agent.Canceled{Why: "this", Now: true},
		agent.Resumed{Activation: "L1", Node: "n1"}, agent.Resumed{Activation: "L2", Node: "n2"},
		agent.Resumed{Activation: "L3", Node: "n3", Looked: true, Found: map[string]string{"prompt": "7"}},
		agent.Messaged{From: "root-9-9", Text: "this"}, agent.Messaged{From: "root-9-9", Text: "that"}}
	for _, a := range st.BackgroundChildren {
		list = append(list, agent.Messaged{From: a.Child, Call: a.Call, Text: "this"}, agent.Messaged{From: a.Child, Call: a.Call, Text: "that"})
	}
	switch st.Phase {
	case agent.Reserving:
		for _, out := range []int64{100, 50} {
			list = append(list, agent.Granted{Reservation: st.Reservation, Output: out, Calls: out / 20, Closing: out == 50, Why: spec.TokenBudget})
		}
	case agent.Thinking:
		for _, text := range []string{"this", "that", ""} {
			m := model.Message{Role: model.Assistant, Text: text}
			list = append(list, agent.Replied{Reservation: st.Reservation, Reply: model.Reply{Message: m}},
				agent.Failed{Reservation: st.Reservation, Class: model.Undecodable, Detail: text, Reply: model.Reply{Message: m}})
			m.Calls = []model.ToolCall{{Name: "look", Args: "{}"}, {Name: "pay" + text, Args: `{"x":1}`}}
			list = append(list, agent.Replied{Reservation: st.Reservation, Reply: model.Reply{Message: m}})
		}
		list = append(list, agent.Barred{Reservation: st.Reservation, AfterMS: 9, Why: "this"}, agent.Barred{Reservation: st.Reservation, AfterMS: 90, Why: "that"})
	case agent.Acting, agent.Waiting:
		list = append(list, agent.Admitted{Pause: st.ThrottleWait.N}, agent.Woke{Timer: "gate"})
		for _, c := range st.Calls {
			list = append(list, agent.Returned{Call: c.ID, Attempt: c.Attempt, Text: "this", Live: c.Child != ""}, agent.Returned{Call: c.ID, Attempt: c.Attempt, Text: "that"},
				agent.Started{Call: c.ID, Attempt: c.Attempt, Activation: st.Activation})
		}
		q := st.Suspended.Question.Query
		list = append(list, agent.Answered{Query: q, Decision: "skip"}, agent.Answered{Query: q, Decision: "text", Text: "x"})
	case agent.Stopping:
		list = append(list, agent.StopVetoed{Proposal: st.Proposal, Why: "this"}, agent.StopVetoed{Proposal: st.Proposal, Why: "that"},
			agent.StopAllowed{Proposal: st.Proposal})
	}
	return list
}

// staleFacts are answers to questions that were not asked, or not now (PROTOCOL P7).
func staleFacts(st agent.State) []agent.Fact {
	text := model.Reply{Message: model.Message{Role: model.Assistant, Text: "stale"}}
	list := []agent.Fact{agent.StopAllowed{Proposal: st.Proposal - 1}, agent.StopVetoed{Proposal: st.Proposal + 1, Why: "stale"},
		agent.Granted{Reservation: st.Reservation - 1, Output: 1}, agent.Denied{Reservation: st.Reservation - 1, Why: spec.TokenBudget},
		agent.Replied{Reservation: st.Reservation - 1, Reply: text}, agent.Failed{Reservation: st.Reservation + 1, Class: model.Network},
		agent.Answered{Query: st.Suspended.Question.Query + "0", Decision: "approve"}, agent.Started{Call: "1-0", Attempt: 99, Activation: st.Activation},
		agent.Returned{Call: "99-0", Attempt: 1, Text: "stale"}, agent.Messaged{From: "root-99-0", Call: "99-0", Text: "stale"}}
	list = append(list, agent.Hooked{ID: st.Gate.ID + "0", Point: st.Gate.Point, Answers: []spec.HookAnswer{{Hook: "h0", Decision: spec.HookTrip}}})
	list = append(list, agent.Admitted{Pause: st.ThrottleWait.N + 1}, agent.Barred{Reservation: st.Reservation - 1, Why: "stale"})
	if st.Phase != agent.Stopping {
		list = append(list, agent.StopAllowed{Proposal: st.Proposal})
	}
	if st.Phase != agent.Reserving && st.Suspended.Then != agent.ThenGrant {
		list = append(list, agent.Granted{Reservation: st.Reservation, Output: 1})
	}
	if st.Phase != agent.Thinking {
		list = append(list, agent.Replied{Reservation: st.Reservation, Reply: text})
	}
	for _, c := range st.Calls {
		list = append(list, agent.Returned{Call: c.ID, Attempt: c.Attempt + 1, Text: "stale"},
			agent.Started{Call: c.ID, Attempt: c.Attempt, Activation: "stale"})
	}
	return list
}

// checkSupervisor does the same for the supervisor.
func (j *futuresJudge) checkSupervisor(from supervisor.State, f activation.Fact) {
	if j.step%futuresEvery != 0 {
		return
	}
	was := canonSuper(nil, &from)
	facts := []supervisor.Fact{agent.Canceled{Why: "this", Now: true}, agent.Canceled{Of: "root-1-0"},
		agent.Reserve{Reservation: futureReservation, Turn: 3}, agent.Settle{Reservation: futureReservation, Lost: true}, agent.Finish{Outcome: spec.Outcome{Reason: spec.Completed}},
		agent.Delegate{Call: "90-0", Child: "root-90-0", Goal: "this"}, agent.Park{Query: "q"}, agent.Send{Call: "90-1", To: "root-1-0", Text: "this"},
		agent.Delegate{Call: "90-2", Child: "root-90-2", Goal: "that", Background: true}, agent.ReportLog{Node: "n"},
		agent.Backlog{Call: "90-3", Do: "post", Title: "this"}, agent.Backlog{Call: "90-4", Do: "post", Title: "that"}, agent.Backlog{Call: "90-5", Do: "claim"}}
	closed := from.Pool.Settle("root", futureReservation, budget.Amount{})
	if _, g := closed.Reserve("root", futureReservation, budget.AttemptRequest{Input: 1, Output: 1, Closing: 1}); g.Verdict != budget.Stale {
		j.fail("a reservation that was settled before it was seen is %s", g.Verdict)
	}
	type future struct {
		state supervisor.State
		form  []byte
	}
	var seen []future
	for _, fact := range facts {
		who := spec.Root
		if _, command := fact.(agent.Canceled); command {
			who = ""
		}
		next, _ := supervisor.Step(from, supervisor.Input{N: f.N, At: from.Now, From: who, Fact: fact})
		seen = append(seen, future{next, canonSuper(nil, &next)})
	}
	for i, x := range seen {
		if !bytes.Equal(x.form, canonSuper(nil, &x.state)) {
			j.fail("a future of the run (%s) was changed by another", facts[i].Kind())
		}
	}
	if !bytes.Equal(was, canonSuper(nil, &from)) {
		j.fail("a step changed the state of the run that it was given")
	}
}
