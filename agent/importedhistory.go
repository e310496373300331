package agent

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/internal/promptlayer"
	"github.com/troupe-run/troupe/model"
)

// importedHistory is the part of an earlier history that an agent has received before its task.
type importedHistory struct {
	Past     string // the name of that history
	Parts    int    // that have arrived
	Messages []model.Message
	Fold     *history.Summary
	Journal  string // see Recalled
	// Obstacles are those of its agent, and Tainted is the text from outside that it had read.
	Obstacles []obstacle
	Tainted   *spec.Taint
}

// handleRecalled handles a part of an earlier history, before the task. A part 0 starts
// anew: the sender of the parts before may have died between them.
func handleRecalled(s *State, f Recalled) (*State, []Effect) {
	switch {
	case s.Phase != "":
		return s, nil
	case f.Part == 0:
		s.ImportedHistory = importedHistory{Past: f.Past}
	case f.Past != s.ImportedHistory.Past || f.Part != s.ImportedHistory.Parts:
		return s, nil
	}
	if len(s.ImportedHistory.Messages)+len(f.Messages) > history.MessagesMax {
		return s, nil
	}
	s.ImportedHistory.Parts++
	s.ImportedHistory.Messages = slices.Concat(s.ImportedHistory.Messages, f.Messages)
	if f.Fold != nil {
		s.ImportedHistory.Fold = f.Fold
	}
	if f.Journal != "" {
		s.ImportedHistory.Journal = f.Journal
	}
	if f.Tainted != nil {
		s.ImportedHistory.Tainted = f.Tainted
	}
	s.ImportedHistory.Obstacles = append(slices.Clip(s.ImportedHistory.Obstacles), f.Obstacles...)
	return s, nil
}

// adoptHistory makes the recalled messages the beginning of the transcript. Their calls
// get ids that no call of this agent can have, and faults that a provider would
// reject are repaired: a recalled history may come from anywhere.
func adoptHistory(s *State) *State {
	if len(s.ImportedHistory.Messages) == 0 {
		return s
	}
	if s.ImportedHistory.Journal != "" && s.Task.LoopOptions.Journal {
		j, _ := s.Journal.applyCall(journalUpdate, s.ImportedHistory.Journal)
		s = editJournal(s, j)
	}
	if s.Task.LoopOptions.Obstacles {
		s.Obstacles = lastItems(s.ImportedHistory.Obstacles, obstaclesMax)
	}
	mended, fold := mendHistory(s.ImportedHistory.Messages, s.ImportedHistory.Fold)
	if fold != nil {
		s.Fold = Fold{Upto: fold.Upto, Text: fold.Text, Deep: fold.Deep}
	}
	s.transcript = transcript{History: mended, Recalled: len(mended)}
	if s.Task.Tainted == nil {
		s.Task.Tainted = s.ImportedHistory.Tainted
	}
	s.ImportedHistory, s.Task = importedHistory{}, offerKnownTools(s.Task, mended)
	return s
}

// continuationText begins the message that follows a run of the conversation that did not complete.
func continuationText(p *spec.HistoryOrigin) string {
	if p == nil || p.Reason == "" || p.Reason == spec.Completed {
		return ""
	}
	return fmt.Sprintf("[The previous run of this conversation ended early: %s. Its history is above. "+
		"Continue its unfinished work, as far as this message asks for it.]\n\n", p.Reason)
}

// Past is the agent's history as it stands. It answers open calls with their
// results as known now.
func (s *State) Past() history.Transcript {
	stable, _ := promptlayer.Compose(s.Task)
	p := history.Transcript{Form: history.Form, Run: s.Task.Run, Agent: s.Task.ID, Name: s.Task.Name, Goal: s.Task.Goal, System: stable,
		Model: s.currentModel(&s.Task).Name, Turn: s.Turn, Usage: s.Usage, Messages: message.WithoutMedia(s.History), Journal: s.Journal.fullText(), Tainted: cmp.Or(s.Tainted, taintOfResults(s, s.Calls))}
	if len(s.Calls) > 0 {
		results := make([]model.ToolResult, len(s.Calls))
		for i, c := range s.Calls {
			results[i] = c.resultSoFar()
		}
		p.Messages = append(p.Messages, model.Message{Role: model.ToolRole, Results: results})
	}
	if s.Fold.Upto > 0 {
		p.Fold = &history.Summary{Upto: s.Fold.Upto, Text: s.Fold.Text, Deep: s.Fold.Deep}
	}
	return p
}

// RecallParts divides a history into facts that fit an entry each. id names the history:
// parts of another one do not mix with them.
func RecallParts(p history.Transcript, id string) ([]Recalled, error) {
	pieces, err := splitHistory(p)
	if err != nil {
		return nil, err
	}
	parts := make([]Recalled, len(pieces))
	for i, piece := range pieces {
		parts[i] = Recalled{Past: id, Part: i, Messages: piece.Messages, Fold: piece.Fold, Tainted: taintOfHistory(p)}
	}
	return parts, nil
}

// HistoryBound is an upper bound of the tokens that a history adds to a prompt.
func HistoryBound(p history.Transcript) int64 {
	s := adoptHistory(&State{ImportedHistory: importedHistory{Messages: p.Messages, Fold: p.Fold}})
	var n int64
	for _, m := range s.Prompt() {
		n += budget.Message(m)
	}
	return n
}

// resultSoFar returns the result of a call, or a note that there is none yet.
func (c Call) resultSoFar() model.ToolResult {
	r := model.ToolResult{Call: c.ID, Error: true, Text: "no result yet: the call was under way when this history was taken"}
	switch c.Stage {
	case Ended:
		return c.Result
	case Pending, Starting:
		r.Text = "not run: the call had not begun when this history was taken"
	}
	return r
}

// Turned reports whether turn n is complete in this State: the transcript holds
// its reply and the result of each of its calls.
func (s *State) Turned(n int) bool {
	if s.Phase == "" || s.Turn != n || len(s.Calls) > 0 {
		return false
	}
	for _, m := range slices.Backward(s.History) {
		if !m.Tombstone {
			return len(m.Calls) == 0
		}
	}
	return true
}

// historyForChild returns the messages with which a child begins that inherits its parent's
// history: those that the model had read when it requested the child.
func historyForChild(s *State) []model.Message {
	before := trialCopy(s)
	if len(s.Calls) > 0 {
		before.History = s.History[:s.newestReply()]
	}
	return message.WithoutMedia(before.Prompt())
}

// delegationOf requests the child of a call, or says why it cannot.
func delegationOf(s *State, c Call) (e Delegate, why string) {
	var args delegateArgs
	decodeArgs(c.Args, &args)
	e = Delegate{Call: c.ID, Child: c.Child, Name: args.Agent, Goal: args.Task, Background: args.Background, Schema: args.schemaText(), Tainted: s.Tainted}
	e.SoftMS, e.HardMS = timeLeft(&s.Task.Limits, s.workTime())
	if !args.Fork {
		return e, ""
	}
	e.Past = historyForChild(s)
	if bytes, ok := message.FitsEntry(e.Past...); !ok {
		why = fmt.Sprintf("the history is %d messages of %d bytes, at most %d bytes can be handed on; it was not delegated. "+
			"Delegate without fork, and put what matters into the task", len(e.Past), bytes, message.PartBytesMax)
	}
	return e, why
}
