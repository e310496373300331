package sim

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// users are the people who answer what a run asks, and speak to its agents.
type users struct {
	*environment
	store        *logStore
	messagesSent int                   // messages to agents that wait for children
	questions    map[askedQuestion]int // answers given
}

func (u *users) answersTo(who spec.ID, query string) int {
	return u.questions[askedQuestion{who, query}]
}
func (u *users) countAnswer(who spec.ID, query string) { u.questions[askedQuestion{who, query}]++ }

// spokenMax is how often a person sends a message to an agent that waits for children.
const spokenMax = 2

// answersMax is how many answers people give to one query: they do not know
// that the first one is on its way.
const answersMax = 3

// mayAnswer reports whether a person may still answer the query that an agent waits for. One that two people must
// approve needs more answers: some are of the same person.
func (u *users) mayAnswer(a *actor) bool {
	q := a.shadow.agent.State.Suspended.Question
	return u.answersTo(a.id, q.Query) < answersMax*max(1, 8*(q.Approvals-1))
}

// asksPerson reports whether an agent waits for a person's answer.
func asksPerson(st *agent.State) bool { return st.Suspended.Question.Query != "" }

// answerQuery is a person's decision about an open query.
func (u *users) answerQuery(a *actor) {
	question := a.shadow.agent.State.Suspended.Question
	q := question.Query
	decision, by := oneOf(u.dice, spec.Approve, spec.Skip, spec.TextOnly, spec.Deny), ""
	if question.Approvals > 1 {
		decision, by = oneOf(u.dice, spec.Approve, spec.Approve, spec.Approve, decision), oneOf(u.dice, "", "ann", "Ann", "bob", "bob")
	}
	answer := agent.Answered{Query: q, Decision: decision, Text: "it is done", By: by}
	if u.isOn(faultPermissions) {
		answer.Digest = oneOf(u.dice, "", a.shadow.agent.State.Suspended.Question.Digest, "another call")
	}
	if answer.Digest != "another call" { // such an answer is none
		u.countAnswer(a.id, q)
	}
	u.store.appendCommand(a, "answered", answer)
}
