package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// decisions are the decisions of a user about a call.
var decisions = []string{"approve", "deny", "skip", "text"}

// answerQuery passes a user's decision to the agent that asked. The row then says that the
// question is answered, whether or not a node has read the answer.
func (c *commander) answerQuery(ctx context.Context, r client.AnswerRequest) (any, error) {
	if !slices.Contains(decisions, r.Decision) {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("decision is %q", r.Decision), Hint: "decide " + strings.Join(decisions, ", ")}
	}
	l, err := c.lookAtRun(ctx, r.RunID, r.Request)
	if err != nil {
		return nil, err
	}
	q, ok := findQuestion(l, r)
	if !ok && l.summary.QuestionsCut {
		if l, err = c.lookFully(ctx, l.row); err != nil {
			return nil, err
		}
		q, ok = findQuestion(l, r)
	}
	if !ok {
		return nil, &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("no open query %q in %s", r.Query, r.RunID),
			Hint: "`troupe questions` shows the open ones"}
	}
	if l.row.isAnswered(q) {
		return nil, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%q in %s is answered already", r.Query, r.RunID),
			Hint: "`troupe run --resume " + r.RunID + "` continues a run that no node has"}
	}
	f := agent.Answered{Query: r.Query, Decision: r.Decision, Text: r.Text}
	done, err := c.appendTo(ctx, l, answerID(r), q.Agent, "", f.Kind(), f)
	if err != nil {
		return nil, err
	}
	if err := c.cfg.Runs.markAnswered(ctx, r.RunID, q); err != nil { // the answer is in the log, and counts
		c.logger().Warn("a question was not marked as answered in the index", "run", r.RunID, "agent", q.Agent, "error", err)
	}
	return done, nil
}

// answerID is the id of the entry of an answer. An agent drops an entry whose id it has seen, so no
// other request, and no answer to another question, may have the same: clients choose request ids,
// which have no colon.
func answerID(r client.AnswerRequest) string { return "answer:" + r.Query + ":" + r.Request }

// findQuestion finds the question that a request answers.
func findQuestion(l look, r client.AnswerRequest) (supervisor.OpenQuestion, bool) {
	for _, q := range l.summary.Questions {
		if q.Query == r.Query && (r.Agent == "" || r.Agent == string(q.Agent)) {
			return q, true
		}
	}
	return supervisor.OpenQuestion{}, false
}
