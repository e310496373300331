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
type futuresJudge struct {
	*environment
	seen   []steppedFuture
	was    []byte // the form of the state before
	forms  []byte // of all futures
	buf    []byte // the form that is compared
	before int    // facts that were stepped before the first step
}

// steppedFuture is what a step of one state came to.
type steppedFuture struct {
	state   agent.State
	effects []agent.Effect
	end     int // of its form in forms
}

// futureReservation is a number that no run comes to.
const futureReservation = 1000

// futuresEvery is how often two futures are stepped from one state.
const futuresEvery = 24

// isDue reports whether two futures are stepped now. A fork copies the entries of its original before its first step.
func (j *futuresJudge) isDue() bool {
	if j.step > 0 {
		return j.step%futuresEvery == 0
	}
	j.before++
	return j.before%futuresEvery == 1
}

// checkAgent steps two more futures from the state before a step and one
// from the state after it: none may change the state of another.
func (j *futuresJudge) checkAgent(before, after agent.State, f activation.Fact) {
	if !j.isDue() {
		return
	}
	j.checkFutures(before, f)
	j.checkFutures(after, f)
}

func (j *futuresJudge) checkFutures(from agent.State, f activation.Fact) {
	was := canonAgent(j.was[:0], &from)
	facts := possibleFacts(from)
	seen, forms := j.seen[:0], j.forms[:0]
	for _, fact := range facts {
		next, stepped := agent.Step(from, agent.Input{N: f.N, At: from.Now, Activation: from.Activation, Fact: fact})
		forms = canonEffects(canonOwn(forms, &next, &from), stepped.Effects, next.History)
		seen = append(seen, steppedFuture{next, stepped.Effects, len(forms)})
		// One step further, so that two futures grow from one transcript.
		agent.Step(next, agent.Input{N: f.N + 1, At: from.Now, Activation: from.Activation, Fact: agent.Canceled{Why: "later", Now: true}})
	}
	j.was, j.seen, j.forms = was, seen, forms
	begin := 0
	for i := range seen {
		x := &seen[i]
		j.buf = canonEffects(canonOwn(j.buf[:0], &x.state, &from), x.effects, x.state.History)
		if !bytes.Equal(forms[begin:x.end], j.buf) {
			j.fail(logsDecide, "a future of %s in %s (%s) was changed by another", from.Task.ID, from.Phase, facts[i].Kind())
		}
		begin = x.end
	}
	for _, fact := range staleFacts(from) {
		next, stepped := agent.Step(from, agent.Input{N: f.N, At: from.Now, Activation: from.Activation, Fact: fact})
		var same bool
		if same, j.buf = sameAgent(j.buf, &from, &next); len(stepped.Effects) > 0 || !same {
			j.fail(noQuestionNoAnswer, "%s in %s takes the answer to another question: %+v", from.Task.ID, from.Phase, fact)
		}
	}
	if j.buf = canonAgent(j.buf[:0], &from); !bytes.Equal(was, j.buf) {
		j.fail(logsDecide, "a step changed the state of %s that it was given", from.Task.ID)
	}
}

// someCalls are calls from all over a long list: a reply may have as many as the loop keeps.
func someCalls(calls []agent.Call) []agent.Call {
	if len(calls) <= callsTried {
		return calls
	}
	some := make([]agent.Call, callsTried)
	for i := range some {
		some[i] = calls[i*(len(calls)-1)/(callsTried-1)]
	}
	return some
}

const callsTried = 8

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
		list = append(list, agent.Throttled{Reservation: st.Reservation, AfterMS: 9, Why: "this"}, agent.Throttled{Reservation: st.Reservation, AfterMS: 90, Why: "that"})
	case agent.Acting, agent.Waiting:
		list = append(list, agent.Admitted{Pause: st.ThrottleWait.N}, agent.Woke{Timer: "gate"})
		for _, c := range someCalls(st.Calls) {
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
	list = append(list, agent.Admitted{Pause: st.ThrottleWait.N + 1}, agent.Throttled{Reservation: st.Reservation - 1, Why: "stale"})
	if st.Phase != agent.Stopping {
		list = append(list, agent.StopAllowed{Proposal: st.Proposal})
	}
	if st.Phase != agent.Reserving && st.Suspended.Then != agent.ThenGrant {
		list = append(list, agent.Granted{Reservation: st.Reservation, Output: 1})
	}
	if st.Phase != agent.Thinking {
		list = append(list, agent.Replied{Reservation: st.Reservation, Reply: text})
	}
	for _, c := range someCalls(st.Calls) {
		list = append(list, agent.Returned{Call: c.ID, Attempt: c.Attempt + 1, Text: "stale"},
			agent.Started{Call: c.ID, Attempt: c.Attempt, Activation: "stale"})
	}
	return list
}

// checkSupervisor does the same for the supervisor.
func (j *futuresJudge) checkSupervisor(from supervisor.State, f activation.Fact) {
	if !j.isDue() {
		return
	}
	was := canonSuper(j.was[:0], &from)
	facts := []supervisor.Fact{agent.Canceled{Why: "this", Now: true}, agent.Canceled{Of: "root-1-0"},
		agent.Reserve{Reservation: futureReservation, Turn: 3}, agent.Settle{Reservation: futureReservation, Lost: true}, agent.Finish{Outcome: spec.Outcome{Reason: spec.Completed}},
		agent.Delegate{Call: "90-0", Child: "root-90-0", Goal: "this"}, agent.Park{Query: "q"}, agent.Send{Call: "90-1", To: "root-1-0", Text: "this"},
		agent.Delegate{Call: "90-2", Child: "root-90-2", Goal: "that", Background: true}, agent.ReportLog{Node: "n"},
		agent.Backlog{Call: "90-3", Do: "post", Title: "this"}, agent.Backlog{Call: "90-4", Do: "post", Title: "that"}, agent.Backlog{Call: "90-5", Do: "claim"}}
	closed := from.Pool.Settle("root", futureReservation, budget.Amount{})
	if _, g := closed.Reserve("root", futureReservation, budget.AttemptRequest{Input: 1, Output: 1, Closing: 1}); g.Verdict != budget.Stale {
		j.fail(logsDecide, "a reservation that was settled before it was seen is %s", g.Verdict)
	}
	type future struct {
		state supervisor.State
		end   int
	}
	seen, forms := make([]future, 0, len(facts)), j.forms[:0]
	for _, fact := range facts {
		who := spec.Root
		if _, command := fact.(agent.Canceled); command {
			who = ""
		}
		next, _ := supervisor.Step(from, supervisor.Input{N: f.N, At: from.Now, From: who, Fact: fact})
		forms = canonSuper(forms, &next)
		seen = append(seen, future{next, len(forms)})
	}
	j.was, j.forms = was, forms
	begin := 0
	for i := range seen {
		x := &seen[i]
		if j.buf = canonSuper(j.buf[:0], &x.state); !bytes.Equal(forms[begin:x.end], j.buf) {
			j.fail(logsDecide, "a future of the run (%s) was changed by another", facts[i].Kind())
		}
		begin = x.end
	}
	if j.buf = canonSuper(j.buf[:0], &from); !bytes.Equal(was, j.buf) {
		j.fail(logsDecide, "a step changed the state of the run that it was given")
	}
}
