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

// asksPerson reports whether an agent waits for a person's answer.
func asksPerson(st *agent.State) bool { return st.Suspended.Question.Query != "" }

// answerQuery is a person's decision about an open query.
func (u *users) answerQuery(a *actor) {
	q := a.shadow.agent.State.Suspended.Question.Query
	decision := oneOf(u.dice, spec.Approve, spec.Skip, spec.TextOnly, spec.Deny)
	answer := agent.Answered{Query: q, Decision: decision, Text: "it is done"}
	if u.isOn(faultPermissions) {
		answer.Digest = oneOf(u.dice, "", a.shadow.agent.State.Suspended.Question.Digest, "another call")
	}
	if answer.Digest != "another call" { // such an answer is none
		u.countAnswer(a.id, q)
	}
	u.store.appendCommand(a, "answered", answer)
}
