package runindex

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// A run works before it has a row, and the row holds the marks. So the mark of a run without one is tried again for
// rowLag, every claimPause. A run of a full index stays without one: then its log decides.
const (
	rowLag     = 5 * time.Second
	claimPause = 20 * time.Millisecond
)

// ClaimAnswer marks a question as answered by a request, unless another request has. open is the
// Summary that holds the question. The row forgets a mark once its question is closed. If the run has no row after
// rowLag, nothing is marked and there is no error: the log of the run decides between two answers.
func (r *Index) ClaimAnswer(ctx context.Context, run string, claim AnsweredQuestion, open RowSummary) error {
	for late := time.Now().Add(rowLag); ; {
		missing, err := tryClaim(ctx, r, run, claim, open)
		if err != nil || !missing || !time.Now().Before(late) {
			return err
		}
		select {
		case <-time.After(claimPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryClaim is ClaimAnswer for a run that may have no row yet.
func tryClaim(ctx context.Context, r *Index, run string, claim AnsweredQuestion, open RowSummary) (missing bool, err error) {
	var refusal error
	err = r.changeRow(ctx, run, func(row *Row) bool {
		refusal = nil
		i := slices.IndexFunc(row.Answered, claim.isSameQuestion)
		missing = row.isMissing()
		switch {
		case missing:
			return false
		case i >= 0 && row.Answered[i].Request == claim.Request: // it is sent again: as young as a new one, or it counts as doubtful
			renews := !row.Answered[i].Logged && row.Answered[i].AtMS < claim.AtMS
			if renews {
				row.Answered[i] = claim
			}
			return renews
		case i >= 0, row.hasClosed(claim, open):
			refusal = AnsweredError(claim.Query, run)
			return false
		}
		if len(row.Answered) >= AnsweredMax {
			row.dropClosed(open.Summary, time.UnixMilli(claim.AtMS))
		}
		if len(row.Answered) >= AnsweredMax {
			refusal = &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("no node has read the last %d answers of %s", AnsweredMax, run), Retry: refuse.RetryAfter,
				Hint: "ask again in a moment; `troupe run --resume " + run + "` continues a run that no node has"}
			return false
		}
		row.Answered = append(row.Answered, claim)
		return true
	})
	return missing, cmp.Or(err, refusal)
}

// dropClosed removes the marks of questions that are no longer open. A mark that is young may be that
// of a question newer than the Summary.
func (r *Row) dropClosed(open supervisor.Summary, now time.Time) {
	if open.QuestionsCut {
		return
	}
	r.Answered = slices.DeleteFunc(r.Answered, func(a AnsweredQuestion) bool {
		return !slices.ContainsFunc(open.Questions, a.Names) && now.Sub(time.UnixMilli(a.AtMS)) > bounds.RequestTimeout
	})
}

// SettleAnswer records whether the log of the agent has the answer that a mark announces. If not, the
// mark goes, and the question is open.
func (r *Index) SettleAnswer(ctx context.Context, run string, mark AnsweredQuestion, logged bool) error {
	return r.changeRow(ctx, run, func(row *Row) bool {
		i := slices.Index(row.Answered, mark)
		switch {
		case i < 0:
			return false
		case logged:
			row.Answered[i].Logged = true
		default:
			row.Answered = slices.Delete(row.Answered, i, i+1)
		}
		return true
	})
}

func (a AnsweredQuestion) isSameQuestion(b AnsweredQuestion) bool {
	return a.Agent == b.Agent && a.Query == b.Query && a.Asked == b.Asked
}

// AnsweredError refuses the answer to a question that another request has answered.
func AnsweredError(query, run string) *client.Error {
	return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%q in %s is answered already", query, run),
		Hint: "`troupe questions` shows the open ones; `troupe run --resume " + run + "` continues a run that no node has"}
}
