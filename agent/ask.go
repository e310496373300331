package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// askTool is the tool by which a model asks a person; the loop itself parks for it.
const askTool = "ask_human"

// AskSpec is what a model is told about ask_human.
func AskSpec() model.ToolSpec {
	return model.ToolSpec{Name: askTool, Class: model.Effect,
		Description: "Ask the person who runs you, and wait for the answer: for what only they can decide or know. The options, if any, are what they can choose from.",
		Schema:      `{"type":"object","properties":{"question":{"type":"string"},"options":{"type":"array","items":{"type":"string"}}},"required":["question"]}`}
}

// QuestionBytesMax bounds what a person is asked, so that it fits an entry and a screen.
const QuestionBytesMax = DetailBytesMax

// put asks a person in the name of the loop, at a turn boundary. The answer
// becomes a message and the loop goes on as `then`; a denial ends it. Where
// nobody can be asked it ends at once, as `without`.
func put(s State, question string, reason, without Reason, then Transition) (State, []Effect) {
	if !s.Task.Manners.Ask { //mutant:question-needs-a-person
		return finish(s, Outcome{Reason: without, Text: s.found(), Partial: true, Detail: question})
	}
	s.Asks++
	s.Phase, s.Parked, s.Transition = Waiting, s.Now, then
	s.Query = Park{Query: fmt.Sprintf("turn-%d.%d", s.Turn, s.Asks), Reason: reason, Question: clip(question, DetailBytesMax)}
	return s, []Effect{s.Query}
}

// escalate puts what is the matter to a person, who says how the agent goes on.
func escalate(s State, what string, without Reason, then Transition) (State, []Effect) {
	if ending, _ := s.spent(); ending != "" {
		return nextTurn(s, then) // a limit ends it now, whatever anybody says
	}
	if s.Task.Manners.Ask {
		what += " How shall it go on? (deny ends it here)"
	}
	return put(s, what, NeedsHuman, without, then)
}

// told goes on after a person has answered what the loop asked.
func told(s State, f Answered) (State, []Effect) {
	then := s.Transition
	reason := s.Query.Reason
	s, fx := s.unpark()
	s.Force, s.Habits = "", s.Habits.afresh()
	if f.Decision == "deny" { //mutant:denial-goes-on
		s, more := finish(s, Outcome{Reason: reason, Text: s.found(), Partial: true, Detail: strings.TrimSuffix("a person said no: "+strings.TrimSpace(f.Text), ": ")})
		return s, append(fx, more...)
	}
	text := strings.TrimSpace(f.Text)
	if text == "" {
		text = "Go on."
	}
	s = s.heard("A person answered: " + text)
	s, more := nextTurn(s, then)
	return s, append(fx, more...)
}

// question is what a call of ask_human asks.
func (s State) question(c Call) Park {
	return Park{Query: fmt.Sprintf("%s.%d", c.ID, c.Attempt), Call: c.ID, Reason: NeedsHuman, Question: clip(asked(c.Args), QuestionBytesMax)}
}

// asked is the question in a call's arguments, with its options; "" is none.
func asked(args string) string {
	var a struct {
		Question string
		Options  []string
	}
	decode(args, &a) // what does not fit has no question
	text := strings.TrimSpace(a.Question)
	options := slices.DeleteFunc(a.Options, func(o string) bool { return strings.TrimSpace(o) == "" })
	if text != "" && len(options) > 0 {
		text += " (" + strings.Join(options, " | ") + ")"
	}
	return text
}

// What a call of ask_human is answered with while nobody has answered.
const (
	nobodyToAsk = "nobody can be asked here; the run ends for a person to look at"
	notAnswered = "a person was asked and has not answered"
)

// misasked says what is wrong with the arguments of ask_human.
func misasked(args string) string {
	switch text := asked(args); {
	case text == "":
		return "the question is empty"
	case len(text) > QuestionBytesMax:
		return fmt.Sprintf("the question with its options is %d bytes, at most %d are allowed", len(text), QuestionBytesMax)
	}
	return ""
}

// asks: the call is going to ask a person.
func (c Call) asks() bool { return c.Name == askTool && c.Stage != Ended }

// inVain: the call asks, and nobody can be asked.
func (c Call) inVain() bool { return c.Name == askTool && c.Result.Text == nobodyToAsk }

// answeredByPerson: a call of the batch was answered by a person.
func answeredByPerson(calls []Call) bool {
	return slices.ContainsFunc(calls, func(c Call) bool { return c.Name == askTool && c.Stage == Ended && !c.Result.Error })
}
