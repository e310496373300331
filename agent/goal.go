package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/schema"
	"github.com/troupe-run/troupe/model"
)

// goalProgress records how often the loop itself sent back a claimed completion, and which
// text of those completions it keeps.
type goalProgress struct {
	Sent   int   // because something was missing
	Nudges int   // because there was budget left to use
	Used   int64 // output tokens at the newest claimed completion
	Small  int   // continuations in a row that brought little
	// Kept is the text of nudged completions, with which the answer begins; if the
	// answer has a schema, Kept is the newest text that fits it.
	Kept       string
	Asked      int    // times the agent was asked about obstacles
	AskedAbout string // the newest obstacle of the last time
	Answer     string // the answer about which it was asked; an answer that is only a mark confirms it
	// IsConfirmed: an answer has said that the task is done although there were obstacles.
	IsConfirmed bool
	End         spec.Reason // how the loop ends if the stop is allowed; "": completed
}

// pursueGoal sends a claimed completion back if it lacks something that the task
// requires, or if there is budget left to use. busy is false if the loop may stop.
func pursueGoal(s *State) (next *State, fx []Effect, busy bool) {
	s.Goal.End = ""
	r := s.Task.LoopOptions.Require
	fitting, missing := missingItems(s, r)
	if len(missing) > 0 {
		s, fx = sendBack(s, r, missing)
		return s, fx, true
	}
	if r.Schema != "" {
		s.Goal.Kept = fitting
	}
	return useBudgetLeft(s)
}

// missingItems compares a claimed completion with the requirements. fitting is the answer
// that fits the schema.
func missingItems(s *State, r spec.Require) (fitting string, missing []string) {
	for _, e := range r.Evidence {
		if !s.hasEvidence(e) {
			missing = append(missing, evidenceText(e))
		}
	}
	if r.Schema == "" {
		return "", missing
	}
	answer := s.joinedText()
	if rest, isDone := cutMark(answer, doneMark); isDone && len(s.Obstacles) > 0 {
		answer = rest
	}
	fitting, err := s.tools.fitAnswer(answer)
	switch {
	case err == nil:
	case s.Goal.Kept != "": // the continuation has no better answer
		fitting = s.Goal.Kept
	default:
		missing = append(missing, "a final answer that fits its schema: "+clip.Text(err.Error(), errorShownBytes))
	}
	return fitting, missing
}

// evidenceText names a result that the task requires.
func evidenceText(e spec.Evidence) string {
	text := "a successful result of " + e.Tool
	if e.Contains != "" {
		text += fmt.Sprintf(" that contains %q", clip.Text(e.Contains, errorShownBytes))
	}
	return text
}

// sendBack names the missing items, a bounded number of times; then the loop ends
// and reports the answer as incomplete.
func sendBack(s *State, r spec.Require, missing []string) (*State, []Effect) {
	if s.Goal.Sent >= cmp.Or(r.Tries, spec.RequireTries) { //mutant:criteria-for-ever
		return finishAgent(s, spec.Outcome{Reason: spec.EvidenceMissing, Text: s.finalAnswer(), Partial: true, Detail: "missing: " + strings.Join(missing, "; ")})
	}
	s.Goal.Sent++
	text := notDone + " What is missing:\n- " + strings.Join(missing, "\n- ")
	if r.Schema != "" {
		text += "\nThe final answer is JSON alone, of this schema: " + r.Schema
	}
	return endTurn(sendOnwards(s, text), spec.CriteriaUnmet)
}

// requirementText is the part of the task's prompt that states the requirements:
// an answer that must be sent back costs a turn.
func requirementText(r spec.Require) string {
	var b strings.Builder
	for i, e := range r.Evidence {
		if i == 0 {
			b.WriteString("\n\nBefore you finish there must be:")
		}
		b.WriteString("\n- " + evidenceText(e))
	}
	if r.Schema != "" {
		b.WriteString("\n\nYour final answer must be JSON alone, of this schema: " + r.Schema)
	}
	return b.String()
}

// useBudgetLeft uses up the budget of output tokens: the loop continues until the
// budget is nearly used, or until several continuations in a row bring little.
// Tokens that the provider did not report count as none.
func useBudgetLeft(s *State) (next *State, fx []Effect, busy bool) {
	c := s.Task.LoopOptions.Continue
	if c.Tokens <= 0 {
		return s, nil, false
	}
	used := s.Usage.Output
	switch brought := used - s.Goal.Used; {
	case s.Goal.Nudges == 0:
	case brought < cmp.Or(c.Small, spec.ContinueSmall):
		s.Goal.Small++
	default:
		s.Goal.Small = 0
	}
	s.Goal.Used = used
	enough := int64(float64(c.Tokens) * float64(cmp.Or(c.Percent, spec.ContinuePercent)) / 100)
	if ending, _ := s.reachedLimit(); ending != "" || used >= enough { //mutant:nudged-beyond-the-budget
		return s, nil, false // the claimed completion stands: a closing turn would only cut it short
	}
	if s.Goal.Small >= cmp.Or(c.Rounds, spec.ContinueRounds) { //mutant:nudged-for-ever
		s.Goal.End = spec.DiminishingReturns
		return s, nil, false
	}
	if s.Task.LoopOptions.Require.Schema == "" {
		s.Goal.Kept = s.finalAnswer()
	}
	s.Goal.Nudges++
	text := fmt.Sprintf("%d of %d tokens used. Keep going: do not sum up, go on with what is left to do, or make what you have better.", used, c.Tokens)
	s, fx = endTurn(sendOnwards(s, text), spec.BudgetNudge)
	return s, fx, true
}

// sendOnwards sends a whole answer back, which ends any series of cut or useless
// replies.
func sendOnwards(s *State, text string) *State {
	s.failureStreaks = s.withoutUseless()
	return s.appendMessage(model.Message{Role: model.User, Text: text})
}

// dropKeptText drops the kept text: the answer was sent back, so that text is no
// longer part of the answer.
func dropKeptText(s *State) *State {
	s.Goal.Kept = ""
	return s
}

// finalAnswer is the final text.
func (s *State) finalAnswer() string {
	if s.Declared.Reason != "" {
		return clip.Text(s.Declared.answer(s.History[s.newestReply()].Text), answerBytesMax)
	}
	text := s.joinedText()
	switch {
	case s.Goal.Kept == "":
	case s.Task.LoopOptions.Require.Schema != "":
		text = s.Goal.Kept
	default:
		text = s.Goal.Kept + "\n\n" + text
	}
	if rest, isDone := cutMark(text, doneMark); isDone && s.Goal.IsConfirmed {
		text = cmp.Or(rest, s.Goal.Answer)
	}
	return clip.Text(text, answerBytesMax)
}

var (
	errNoJSON    = errors.New("it is not JSON, nor has it a block of ```json")
	errLong      = fmt.Errorf("it has more than %d bytes", answerBytesMax)
	errNoAnswers = errors.New("the schema itself cannot be used")
)

// fitAnswer extracts the JSON of an answer if it fits the schema: the whole text, or its
// last fenced block that is JSON.
func (c *toolRules) fitAnswer(text string) (string, error) {
	if c.answer == nil {
		return "", errNoAnswers
	}
	text = schema.ExtractJSON(text)
	if len(text) > answerBytesMax {
		return "", errLong
	}
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return "", errNoJSON
	}
	if err := c.answer.Validate(v); err != nil { //mutant:answer-without-its-schema
		return "", err
	}
	return text, nil
}

// schemaOf compiles a schema; it returns nil for a schema that cannot be used.
func schemaOf(text string) *schema.Schema {
	r, err := schema.Compile(text)
	if err != nil {
		return nil
	}
	return r
}
