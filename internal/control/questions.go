package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/internal/refuse"
)

// Question is one open query of a run.
type Question struct {
	RunID string  `json:"run_id"`
	Agent spec.ID `json:"agent"`
	// AgentName is the name of the agent, Title that of the run in lists.
	AgentName string          `json:"agent_name,omitempty"`
	Title     string          `json:"title,omitempty"`
	Query     event.OpenQuery `json:"query"`
	// RunDueMS is when the run ends if nobody answers, in Unix milliseconds; 0: the run works, has no limit, or is not known
	// to be parked.
	RunDueMS int64 `json:"run_due_ms,omitempty"`
	// Goal is the task of the run, Journal the digest of its root's journal, AgentJournal that of an agent below the root.
	Goal         string `json:"goal,omitempty"`
	Journal      string `json:"journal,omitempty"`
	AgentJournal string `json:"agent_journal,omitempty"`
}

// listQuestions returns the open questions, the oldest first, as many as fit a reply.
func (c *viewer) listQuestions(ctx context.Context, _ struct{}) (any, error) {
	rows, err := c.cfg.Runs.ListRows(ctx)
	if err != nil {
		return nil, err
	}
	unfinished := make([]runindex.Row, 0, len(rows))
	for _, row := range rows {
		if row.State != client.RunFinished && !row.Removing && ownsRow(ctx, row) {
			unfinished = append(unfinished, row)
		}
	}
	questions := []Question{}
	for _, r := range c.views.ViewAll(ctx, unfinished, runview.View.LacksQuestions) {
		if refuse.IsNewer(r.Err) {
			continue // this release could not answer it
		}
		if r.Err != nil {
			return nil, r.Err
		}
		for _, q := range r.View.Questions() {
			q, open, err := readApproval(ctx, c.cfg.Post, r.View.Row.RunID, q)
			if err != nil && !refuse.IsNewer(err) {
				return nil, err
			}
			if !open {
				continue
			}
			questions = append(questions, Question{RunID: r.View.Row.RunID, Title: r.View.Row.Title, RunDueMS: r.View.Summary.ParkDueMS, Agent: q.Agent, AgentName: q.Name, Query: event.OpenQuery{Query: q.Query, Question: q.Question, Reason: q.Reason, Call: q.Call,
				Digest: q.Digest, Rule: q.Rule, AskedMS: q.AskedMS, DueMS: q.DueMS, Approvals: q.Approvals, ApprovedBy: q.ApprovedBy}})
		}
	}
	c.showLostCalls(ctx, questions)
	slices.SortStableFunc(questions, func(a, b Question) int { return cmp.Compare(a.Query.AskedMS, b.Query.AskedMS) })
	c.addQuestionContexts(ctx, questions)
	return fitQuestions(questions)
}

// fitQuestions cuts long texts, the longest first, until the questions fit a reply. It then leaves
// out the last: an answer needs only the ids.
func fitQuestions(list []Question) ([]Question, error) {
	for most := bounds.ReplyBytes / 4; ; most /= 4 {
		size := 0
		for i, q := range list {
			raw, err := json.Marshal(q)
			if err != nil {
				return nil, fmt.Errorf("control: questions: %w", err)
			}
			if size += len(raw) + 1; size > bounds.ReplyBytes && most < bounds.TextBytesMin {
				return list[:i], nil
			}
		}
		if size <= bounds.ReplyBytes {
			return list, nil
		}
		for i := range list {
			for _, text := range []*string{&list[i].Query.Question, &list[i].Goal, &list[i].Journal, &list[i].AgentJournal} {
				*text = bounds.TruncateText(*text, most)
			}
		}
	}
}
