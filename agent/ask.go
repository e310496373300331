package agent

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// askTool is the tool by which a model asks a person; the loop itself parks for it.
const askTool = "ask_human"

// put asks a person in the name of the loop, at a turn boundary. The answer
// becomes a message and the loop goes on as `then`; a denial ends it. Where
// nobody can be asked it ends at once, as `without`.
func put(s State, question string, reason, without Reason, then Transition) (State, []Effect) {
	if !s.Task.Manners.Ask {
		return finish(s, Outcome{Reason: without, Text: s.found(), Partial: true, Detail: question})
	}
	s.Phase, s.Parked, s.Transition = Waiting, s.Now, then
	s.Query = Park{Query: fmt.Sprintf("turn-%d.%d", s.Turn, s.Lease), Reason: reason, Question: clip(question, DetailBytesMax)}
	return s, []Effect{s.Query}
}

// told goes on after a person has answered what the loop asked.
func told(s State, f Answered) (State, []Effect) {
	then := s.Transition
	reason := s.Query.Reason
	s, fx := s.unpark()
	if f.Decision == "deny" {
		s, more := finish(s, Outcome{Reason: reason, Text: s.found(), Partial: true, Detail: "a person said no: " + f.Text})
		return s, append(fx, more...)
	}
	text := strings.TrimSpace(f.Text)
	if text == "" {
		text = "Go on."
	}
	s = s.say(model.Message{Role: model.User, Text: "A person answered: " + text})
	s, more := nextTurn(s, then)
	return s, append(fx, more...)
}

// question is what a call of ask_human asks.
func (s State) question(c Call) Park {
	var args struct {
		Question string
		Options  []string
	}
	decode(c.Args, &args)
	text := args.Question
	if len(args.Options) > 0 {
		text += " (" + strings.Join(args.Options, " | ") + ")"
	}
	return Park{Query: fmt.Sprintf("%s.%d", c.ID, c.Attempt), Call: c.ID, Reason: NeedsHuman, Question: clip(text, DetailBytesMax)}
}
