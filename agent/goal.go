package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/internal/schema"
	"github.com/troupe-run/troupe/model"
)

// Goal is how often claimed completions were sent back by the loop itself, and
// what of them is kept.
type Goal struct {
	Sent   int   // because something was missing
	Nudges int   // because there was budget left to use
	Used   int64 // output tokens at the newest claimed completion
	Small  int   // continuations in a row that brought little
	// Kept is what nudged completions said, which the answer begins with; where
	// the answer has a schema it is the newest one that fits.
	Kept string
	End  Reason // how the loop ends if the stop is allowed; "": completed
}

// pursue sends a claimed completion back: it lacks what the task requires, or
// there is budget left to use. busy is false when it may stop.
func pursue(s State) (next State, fx []Effect, busy bool) {
	s.Goal.End = ""
	r := s.Task.Manners.Require
	fitting, missing := s.lacks(r)
	if len(missing) > 0 {
		s, fx = sendBack(s, r, missing)
		return s, fx, true
	}
	if r.Schema != "" {
		s.Goal.Kept = fitting
	}
	return continued(s)
}

// lacks compares a claimed completion with what is required. fitting is the
// answer of the schema.
func (s State) lacks(r Require) (fitting string, missing []string) {
	for _, e := range r.Evidence {
		if !s.shown(e) {
			missing = append(missing, e.what())
		}
	}
	if r.Schema == "" {
		return "", missing
	}
	fitting, err := s.check.fit(s.said())
	switch {
	case err == nil:
	case s.Goal.Kept != "": // a continuation has nothing better
		fitting = s.Goal.Kept
	default:
		missing = append(missing, "a final answer that fits its schema: "+clip(err.Error(), errorShown))
	}
	return fitting, missing
}

// shown: a successful result in the record is the evidence.
func (s State) shown(e Evidence) bool {
	names := map[string]string{}
	for _, m := range s.History {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		for _, r := range m.Results {
			if !r.Error && !m.Tombstone && names[r.Call] == e.Tool && strings.Contains(r.Text, e.Contains) { //mutant:failure-is-evidence
				return true
			}
		}
	}
	return false
}

func (e Evidence) what() string {
	text := "a successful result of " + e.Tool
	if e.Contains != "" {
		text += fmt.Sprintf(" that contains %q", clip(e.Contains, errorShown))
	}
	return text
}

// sendBack names what is missing, a bounded number of times; then the loop ends
// and reports it as incomplete.
func sendBack(s State, r Require, missing []string) (State, []Effect) {
	if s.Goal.Sent >= cmp.Or(r.Tries, RequireTries) { //mutant:criteria-for-ever
		return finish(s, Outcome{Reason: EvidenceMissing, Text: s.answer(), Partial: true, Detail: "missing: " + strings.Join(missing, "; ")})
	}
	s.Goal.Sent++
	text := notDone + " What is missing:\n- " + strings.Join(missing, "\n- ")
	if r.Schema != "" {
		text += "\nThe final answer is JSON alone, of this schema: " + r.Schema
	}
	return nextTurn(s.onwards(text), CriteriaUnmet)
}

// told is what the task's prompt says of the requirements: to be sent back
// costs a turn.
func (r Require) told() string {
	var b strings.Builder
	for i, e := range r.Evidence {
		if i == 0 {
			b.WriteString("\n\nBefore you finish there must be:")
		}
		b.WriteString("\n- " + e.what())
	}
	if r.Schema != "" {
		b.WriteString("\n\nYour final answer must be JSON alone, of this schema: " + r.Schema)
	}
	return b.String()
}

// continued uses up the budget of output tokens: the loop goes on until it is
// nearly used, or until going on brings little several times in a row. Tokens
// that the provider did not report count as none.
func continued(s State) (next State, fx []Effect, busy bool) {
	c := s.Task.Manners.Continue
	if c.Tokens <= 0 {
		return s, nil, false
	}
	used := s.Usage.Output
	switch brought := used - s.Goal.Used; {
	case s.Goal.Nudges == 0:
	case brought < cmp.Or(c.Small, ContinueSmall):
		s.Goal.Small++
	default:
		s.Goal.Small = 0
	}
	s.Goal.Used = used
	enough := int64(float64(c.Tokens) * float64(cmp.Or(c.Percent, ContinuePercent)) / 100)
	if ending, _ := s.spent(); ending != "" || used >= enough { //mutant:nudged-beyond-the-budget
		return s, nil, false // what was claimed stands: a closing turn would only cut it short
	}
	if s.Goal.Small >= cmp.Or(c.Rounds, ContinueRounds) { //mutant:nudged-for-ever
		s.Goal.End = DiminishingReturns
		return s, nil, false
	}
	if s.Task.Manners.Require.Schema == "" {
		s.Goal.Kept = s.answer()
	}
	s.Goal.Nudges++
	text := fmt.Sprintf("%d of %d tokens used. Keep going: do not sum up, go on with what is left to do, or make what you have better.", used, c.Tokens)
	s, fx = nextTurn(s.onwards(text), BudgetNudge)
	return s, fx, true
}

// onwards sends a whole answer back: with it whatever was cut or useless before
// is over.
func (s State) onwards(text string) State {
	s.Useless, s.Cuts = 0, 0
	return s.say(model.Message{Role: model.User, Text: text})
}

// reopened: somebody has sent the answer back, so what was kept of it is not
// the answer any more.
func (s State) reopened() State {
	s.Goal.Kept = ""
	return s
}

// answer is the final text.
func (s State) answer() string {
	text := s.said()
	switch {
	case s.Goal.Kept == "":
	case s.Task.Manners.Require.Schema != "":
		text = s.Goal.Kept
	default:
		text = s.Goal.Kept + "\n\n" + text
	}
	return clip(text, AnswerBytesMax)
}

var (
	errNoJSON    = errors.New("it is not JSON, nor has it a block of ```json")
	errLong      = fmt.Errorf("it has more than %d bytes", AnswerBytesMax)
	errNoAnswers = errors.New("the schema itself cannot be used")
)

// fit is the JSON of an answer if it fits the schema: the whole text, or the
// last fenced block of it that is JSON.
func (c *checker) fit(text string) (string, error) {
	if c.answer == nil {
		return "", errNoAnswers
	}
	text = jsonOf(strings.TrimSpace(text))
	if len(text) > AnswerBytesMax {
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

const jsonFence = "```"

func jsonOf(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	found, open, from, at := text, false, 0, 0
	for line := range strings.Lines(text) {
		end := at + len(line)
		info, fence := strings.CutPrefix(strings.TrimSpace(line), jsonFence)
		switch {
		case fence && open && info == "":
			if block := strings.TrimSpace(text[from:at]); json.Valid([]byte(block)) {
				found = block
			}
			open = false
		case fence && !open:
			open, from = true, end
		}
		at = end
	}
	return found
}

// schemaOf compiles a schema; nil for one that cannot be used.
func schemaOf(text string) *schema.Schema {
	r, err := schema.Compile(text)
	if err != nil {
		return nil
	}
	return r
}
