package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// askTool is the tool by which a model asks a person; the loop itself parks for it.
const askTool = toolname.AskHuman

// mayAskPeople reports whether a person may be asked.
func mayAskPeople(s *State) bool {
	return s.Task.LoopOptions.AskPeople && !s.Task.LoopOptions.Unattended //mutant:unattended-asks
}

// AskSpec describes ask_human to a model.
func AskSpec() model.ToolSpec {
	return model.ToolSpec{Name: askTool, Class: model.Effect,
		Description: "Ask the person who runs you, and wait for the answer: for what only they can decide or know. The options, if any, are what they can choose from.",
		Schema:      `{"type":"object","properties":{"question":{"type":"string"},"options":{"type":"array","items":{"type":"string"}}},"required":["question"]}`}
}

// Answered is a person's decision about an open query.
type Answered struct {
	Query    string        `msgpack:"q"`
	Decision spec.Decision `msgpack:"d"`
	Text     string        `msgpack:"t,omitempty"`
	// Digest is that of the call which the person has read; "": it was not said. An answer with another
	// digest answers nothing.
	Digest string `msgpack:"g,omitempty"`
	// Always is how long an approval counts for calls like this one: AlwaysRun, or "" for this call alone.
	Always string `msgpack:"a,omitempty"`
	By     string `msgpack:"b,omitempty"` // who answered, as the client says it
	// Request is the id of the request of an approval that another one has to follow.
	Request string `msgpack:"i,omitempty"`
}

// Kind is the fact's word in logs.
func (Answered) Kind() string { return "answered" }

// Park says that the agent waits for a person, and with which question.
type Park struct {
	Query    string      `msgpack:"q" json:"query"`
	Question string      `msgpack:"t" json:"question"`
	Reason   spec.Reason `msgpack:"r" json:"reason"`
	Call     string      `msgpack:"c,omitempty" json:"call,omitempty"`
	// Digest is the SHA-256 of the call that is asked about, Rule the rule that an approval may add for the
	// rest of the run, Due when the question expires, in Unix milliseconds; 0: never.
	Digest string `msgpack:"g,omitempty" json:"digest,omitempty"`
	Rule   string `msgpack:"a,omitempty" json:"rule,omitempty"`
	Due    int64  `msgpack:"e,omitempty" json:"due_ms,omitempty"`
	// Approvals is how many different people must approve the call; 0: one. ApprovedBy is the person who has
	// approved, ApprovedAlways and ApprovedRequest are the Always and the Request of that approval.
	Approvals       int    `msgpack:"n,omitempty" json:"approvals,omitempty"`
	ApprovedBy      string `msgpack:"b,omitempty" json:"approved_by,omitempty"`
	ApprovedAlways  string `msgpack:"ba,omitempty" json:"approved_always,omitempty"`
	ApprovedRequest string `msgpack:"bi,omitempty" json:"approved_request,omitempty"`
	// Tainted is the text from outside that the agent has read, which the question names. An accepted
	// Rule then applies despite the taint.
	Tainted *spec.Taint `msgpack:"ta,omitempty" json:"tainted,omitempty"`
}

// Unpark says that the agent no longer waits for a person.
type Unpark struct {
	Query string `msgpack:"q"`
}

// questionBytesMax bounds a question to a person, so that it fits an entry and a screen.
const questionBytesMax = detailBytesMax

// askPerson asks a person a question on behalf of the loop, at a turn boundary. The answer
// becomes a message and the loop continues with the transition `then`; a denial ends the
// loop. If no person can be asked, the loop ends at once with the reason `without`.
func askPerson(s *State, question string, reason, without spec.Reason, then spec.Transition) (*State, []Effect) {
	if !mayAskPeople(s) { //mutant:question-needs-a-person
		return finishAgent(s, spec.Outcome{Reason: without, Text: partialResult(s), Partial: true, Detail: question})
	}
	s.QuestionsAsked++
	s.Transition = then
	s, e := parkFor(s, Park{Query: fmt.Sprintf("turn-%d.%d", s.Turn, s.QuestionsAsked), Reason: reason, Question: clip.Text(question, detailBytesMax)})
	return s, []Effect{e}
}

// parkFor puts a question to a person, about a call or about how to go on.
func parkFor(s *State, q Park) (*State, Effect) {
	then := ThenTurn
	if q.Call != "" {
		then = ThenCalls
	}
	return suspendForPerson(s, suspension{Why: AwaitsPerson, Then: then, Question: q})
}

// suspendForPerson asks the question of a suspension, and waits for the answer.
func suspendForPerson(s *State, w suspension) (*State, Effect) {
	if !s.Suspended.asksPerson() {
		s.AskedAt = s.Now
	}
	if w.Question.Due = 0; s.Task.LoopOptions.QuestionMS > 0 {
		w.Question.Due = s.Now + s.Task.LoopOptions.QuestionMS
	}
	s = suspend(s, w)
	q := w.Question
	s.events.publishQuestion(q)
	if q.Reason == spec.ResumeUnsafe {
		u := event.ResumeUnsafe{Query: q.Query, Call: q.Call}
		if w.Why == AwaitsDriftAnswer {
			u.Differs = s.Drift.blocking(&s.Task)
		}
		s.events.publish(driftEvents, event.KindCheckpointResumeUnsafe, u)
	}
	return s, q
}

// publishQuestion publishes the question that is open after the step.
func (c *stepEvents) publishQuestion(q Park) {
	c.list = slices.DeleteFunc(c.list, func(e stepEvent) bool {
		return e.group == questionEvents || e.Kind == event.KindCheckpointResumeUnsafe
	})
	d := event.AgentParked{Query: q.Query, Question: q.Question, Reason: q.Reason, Call: q.Call, Digest: q.Digest, Rule: q.Rule, DueMS: q.Due,
		Approvals: q.Approvals, ApprovedBy: q.ApprovedBy}
	c.publish(questionEvents, event.KindQueryAsked, d)
	c.publish(questionEvents, event.KindAgentParked, d)
}

// escalateToPerson reports a problem to a person, who decides how the agent continues.
func escalateToPerson(s *State, what string, without spec.Reason, then spec.Transition) (*State, []Effect) {
	if ending, _ := s.reachedLimit(); ending != "" {
		return endTurn(s, then) // a limit ends the loop now, whatever a person would answer
	}
	if mayAskPeople(s) {
		what += " How shall it go on? (deny ends it here)"
	}
	return askPerson(s, what, spec.NeedsHuman, without, then)
}

// endQuestion continues after the wait for a person, which does not count as the agent's time.
func endQuestion(s *State) (*State, []Effect) {
	fx := []Effect{Unpark{Query: s.Suspended.Question.Query}}
	s.Began += s.Now - s.AskedAt //mutant:people's-time-counts
	s.AskedAt = 0
	s = endSuspension(s)
	return s, append(fx, s.allTimers()...)
}

// handleAnswered handles a person's decision about the open query.
func handleAnswered(s *State, f Answered) (*State, []Effect) {
	w := s.Suspended
	if !w.asksPerson() || f.Query != w.Question.Query || f.Digest != "" && f.Digest != w.Question.Digest { //mutant:answer-to-other-arguments-counts
		return s, nil
	}
	if w.Question.Due > 0 && s.Now >= w.Question.Due { //mutant:expired-approval-counts
		f = expiredAnswer(s)
	}
	if w.Question.isApproval(f) {
		if !w.Question.isSecond(f) { //mutant:first-approval-is-enough
			return keepApproval(s, f)
		}
		f = w.Question.combineApprovals(f)
	}
	s.events.publishAnswer(f, w.Question)
	switch {
	case w.Why == AwaitsDriftAnswer:
		return handleDriftAnswer(s, f)
	case w.Then == ThenTurn:
		return continueAfterAnswer(s, f)
	}
	i := s.Calls.find(w.Question.Call)
	c := s.Calls[i]
	s, fx := endQuestion(s)
	s.Transition = spec.ApprovalResolved
	if c.Stage == Gated {
		s.events.publishApproval(c, f, w.Question)
		s, more := grantRule(s, f, w.Question) //mutant:approval-starts-other-calls
		return prependEffects(append(fx, more...))(advanceCalls(s.withCall(i, c.applyDecision(f, w.Question.Digest).withLostNote())))
	}
	if c.Kind == questionCall && f.By == byClock {
		return prependEffects(fx)(advanceCalls(s.withCall(i, c.fail("a person was asked, and "+f.Text))))
	}
	if c.Kind == questionCall {
		return prependEffects(fx)(advanceCalls(s.withCall(i, c.end(personResult(f)))))
	}
	switch f.Decision {
	case spec.Approve:
		var e Effect
		if s, e = enterCall(s, i); e != nil {
			return s, append(fx, e)
		}
		if s.Calls[i].Stage == Ended {
			return prependEffects(fx)(advanceCalls(s)) // the permissions deny it
		}
		return s, fx
	case spec.TextOnly:
		s = s.withCall(i, c.end(model.ToolResult{Text: "reported by a person: " + f.Text}))
	default:
		text := "not run again; whether the first attempt took effect is unknown"
		if said := strings.TrimSpace(f.Text); said != "" {
			text += "; a person says: " + said
		}
		s = s.withCall(i, c.fail(text))
	}
	return prependEffects(fx)(advanceCalls(s))
}

// personResult is the result of asking a person.
func personResult(f Answered) model.ToolResult {
	text := strings.TrimSpace(f.Text)
	if text == "" {
		text = answers[f.Decision]
	}
	return model.ToolResult{Text: "a person answered: " + text}
}

// answers gives the meaning of decisions without text where a question was asked.
var answers = map[spec.Decision]string{spec.Approve: "yes", spec.Deny: "no", spec.Skip: "nothing, go on without an answer", spec.TextOnly: "nothing"}

// continueAfterAnswer continues the loop after a person has answered its question.
func continueAfterAnswer(s *State, f Answered) (*State, []Effect) {
	then := s.Transition
	reason := s.Suspended.Question.Reason
	s, fx := endQuestion(s)
	s.Force, s.LoopDetection = "", s.LoopDetection.cleared()
	if f.Decision == spec.Deny { //mutant:denial-goes-on
		s, more := finishAgent(s, spec.Outcome{Reason: reason, Text: partialResult(s), Partial: true, Detail: denialText(f)})
		return s, append(fx, more...)
	}
	text := strings.TrimSpace(f.Text)
	if text == "" {
		text = "Go on."
	}
	s = appendSteering(s, "A person answered: "+text)
	s, more := endTurn(s, then)
	return s, append(fx, more...)
}

// denialText says why the loop does not continue.
func denialText(f Answered) string {
	if f.By == byClock {
		return f.Text
	}
	return strings.TrimSuffix("a person said no: "+strings.TrimSpace(f.Text), ": ")
}

// askedQuestion returns the query that a call of ask_human puts to a person.
func (c Call) askedQuestion() Park {
	return Park{Query: fmt.Sprintf("%s.%d", c.ID, c.Attempt), Call: c.ID, Reason: spec.NeedsHuman, Question: clip.Text(questionText(c.Args), questionBytesMax)}
}

// questionText extracts the question from a call's arguments, with its options; "" means that there is none.
func questionText(args string) string {
	var a struct {
		Question string
		Options  []string
	}
	decodeArgs(args, &a) // arguments that do not decode have no question
	text := strings.TrimSpace(a.Question)
	options := slices.DeleteFunc(a.Options, func(o string) bool { return strings.TrimSpace(o) == "" })
	if text != "" && len(options) > 0 {
		text += " (" + strings.Join(options, " | ") + ")"
	}
	return text
}

// Results of an ask_human call that no person has answered.
const (
	nobodyToAsk = "nobody can be asked here; the run ends for a person to look at"
	notAnswered = "a person was asked and has not answered"
)

// questionError returns the error in the arguments of ask_human, or "" if they are valid.
func questionError(args string) string {
	switch text := questionText(args); {
	case text == "":
		return "the question is empty"
	case len(text) > questionBytesMax:
		return fmt.Sprintf("the question with its options is %d bytes, at most %d are allowed", len(text), questionBytesMax)
	}
	return ""
}

// asksPerson reports whether the call will put a question to a person.
func (c Call) asksPerson() bool { return c.Kind == questionCall && c.Stage != Ended }

// asksNobody reports whether the call asks although no person can be asked.
func (c Call) asksNobody() bool { return c.Kind == questionCall && c.Result.Text == nobodyToAsk }

// answeredByPerson reports whether a person answered a call of the batch.
func answeredByPerson(calls []Call) bool {
	return slices.ContainsFunc(calls, func(c Call) bool { return c.Kind == questionCall && c.Stage == Ended && !c.Result.Error })
}
