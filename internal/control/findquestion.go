package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// agentsNamedMax is how many agents the refusal of an ambiguous answer names.
const agentsNamedMax = 8

// findQuestion finds the question that a request answers. Agents of a run may ask under the same query id: the agent or the
// digest of the request then says which question is meant, or its mark, if it is sent again. If several open questions
// remain, the request is refused.
func findQuestion(l runview.View, r client.AnswerRequest) (q supervisor.OpenQuestion, ok bool, err error) {
	var named []supervisor.OpenQuestion
	for _, q := range l.Summary.Questions {
		if q.Query == r.Query && (r.Agent == "" || r.Agent == string(q.Agent)) {
			named = append(named, q)
		}
	}
	if ofCall := slices.DeleteFunc(slices.Clone(named), func(q supervisor.OpenQuestion) bool { return q.Digest != r.Digest }); r.Digest != "" && len(ofCall) > 0 {
		named = ofCall
	}
	if len(named) == 0 {
		return q, false, nil
	}
	for _, q := range named {
		if isAnsweredBy(l.Row, q, r) {
			return q, true, nil
		}
	}
	switch open := slices.DeleteFunc(slices.Clone(named), l.Row.IsAnswered); len(open) {
	case 0:
		return named[0], true, nil
	case 1:
		return open[0], true, nil
	default:
		return q, false, ambiguousError(r, open)
	}
}

// isAnsweredBy reports whether a request has answered the question: it is sent again.
func isAnsweredBy(r runindex.Row, q supervisor.OpenQuestion, by client.AnswerRequest) bool {
	return by.Request != "" && (q.ApprovedRequest == by.Request ||
		slices.ContainsFunc(r.Answered, func(a runindex.AnsweredQuestion) bool { return a.Names(q) && a.Request == markOf(by) }))
}

// ambiguousError refuses an answer to questions of several agents.
func ambiguousError(r client.AnswerRequest, open []supervisor.OpenQuestion) error {
	var ids []string
	for _, q := range open[:min(len(open), agentsNamedMax)] {
		ids = append(ids, string(q.Agent))
	}
	agents := strings.Join(ids, ", ")
	if n := len(open) - len(ids); n > 0 {
		agents += fmt.Sprintf(" and %d more", n)
	}
	return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%d agents of %s have an open question %q: %s", len(open), r.RunID, r.Query, agents),
		Hint: "say whose question this answers: --agent " + ids[0] + " (in a request the field agent)"}
}

// pastAnswer is the answer to a question in the log of the agent that asked.
type pastAnswer struct {
	entry string // the id of its entry
	fact  agent.Answered
	at    time.Time
}

// logsSearchedMax is how many logs of agents are searched for the answer to a question that is not open.
const logsSearchedMax = 16

// findPastAnswer searches the logs of the agents of a run, or of one agent, for the answer to a question: that of the
// request itself, else one about the call that the request names, else (unless sameCall) any; nil: none has it.
func findPastAnswer(ctx context.Context, post mailbox.Store, r client.AnswerRequest, of spec.ID, sameCall bool) (best *pastAnswer, err error) {
	logs, err := post.Addresses(ctx, r.RunID)
	if err != nil {
		return nil, fmt.Errorf("control: logs of %s: %w", r.RunID, err)
	}
	slices.Sort(logs)
	logs = slices.DeleteFunc(logs, func(at mailbox.Address) bool {
		return at.Agent() == mailbox.Super || of != "" && at.Agent() != string(of)
	})
	for _, at := range logs[:min(len(logs), logsSearchedMax)] {
		a, err := readPastAnswer(ctx, post, at, r)
		switch {
		case err != nil:
			return nil, err
		case a == nil, sameCall && !a.isOf(r) && a.fact.Digest != r.Digest:
		case a.isOf(r):
			return a, nil
		case best == nil, r.Digest != "" && best.fact.Digest != r.Digest && a.fact.Digest == r.Digest:
			best = a
		}
	}
	return best, nil
}

// isOf reports whether the answer is that of a request, which was sent again.
func (a *pastAnswer) isOf(r client.AnswerRequest) bool { return a.entry == answerID(r) }

// readPastAnswer is findPastAnswer for one log. That of the request itself counts, else the first in the log; approvals
// that another one had to follow count only if no answer does.
func readPastAnswer(ctx context.Context, post mailbox.Store, at mailbox.Address, r client.AnswerRequest) (first *pastAnswer, err error) {
	err = post.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			return nil //nolint:nilerr // an entry of a newer release is no answer that this one can name
		}
		for _, item := range e.Items {
			var f agent.Answered
			if item.Kind != f.Kind() || mailbox.Unmarshal(item.Body, &f) != nil || f.Query != r.Query {
				continue
			}
			a := &pastAnswer{entry: item.ID, fact: f, at: time.UnixMilli(m.At)}
			if first == nil || a.isOf(r) || first.fact.Request != "" && f.Request == "" {
				first = a
			}
			if a.isOf(r) {
				return runlog.ErrEnough
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, runlog.ErrEnough) {
		return nil, fmt.Errorf("control: read %s: %w", at, err)
	}
	return first, nil
}

// refuseAnswered refuses the answer to a question that another request has answered, and says who answered, what and when
// as far as the log of the agent tells. It accepts a request that is sent again.
func refuseAnswered(ctx context.Context, post mailbox.Store, l runview.View, r client.AnswerRequest, of spec.ID) (any, error) {
	a, err := findPastAnswer(ctx, post, r, of, false)
	switch {
	case err != nil:
		return nil, err
	case a == nil:
		return nil, runindex.AnsweredError(r.Query, r.RunID)
	}
	return a.settle(l, r)
}

// refuseMissing refuses an answer to a question that is not open.
func refuseMissing(ctx context.Context, post mailbox.Store, l runview.View, r client.AnswerRequest) (any, error) {
	a, err := findPastAnswer(ctx, post, r, spec.ID(r.Agent), false)
	if err != nil {
		return nil, err
	}
	if a != nil {
		return a.settle(l, r)
	}
	text := fmt.Sprintf("no open query %q in %s", r.Query, r.RunID)
	if l.State() == client.RunFinished {
		text += ": the run has ended"
	}
	return nil, &client.Error{Code: client.CodeNotFound, Text: text, Hint: "`troupe questions` shows the open ones"}
}

// settle accepts a request that is sent again, and refuses any other.
func (a *pastAnswer) settle(l runview.View, r client.AnswerRequest) (any, error) {
	if a.isOf(r) {
		return struct{}{}, nil
	}
	return nil, a.refusal(l, r)
}

// refusal says that a question is answered already.
func (a *pastAnswer) refusal(l runview.View, r client.AnswerRequest) error {
	decision := string(a.fact.Decision)
	if a.fact.Decision == spec.TextOnly {
		decision = "with a text"
	}
	refused := runindex.AnsweredError(r.Query, r.RunID)
	refused.Text += fmt.Sprintf(": %s, by %s at %s", decision, cmp.Or(a.fact.By, "somebody"), a.at.UTC().Format(time.RFC3339))
	if l.State() == client.RunFinished {
		refused.Hint = "the run has ended: `troupe result " + r.RunID + "` shows how"
	}
	return refused
}
