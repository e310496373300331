package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/compare"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// comparedBytesMax is the most bytes of the logs of a run that is compared: the node holds and replays them at once.
	comparedBytesMax = 32 << 20
	// comparedTextMax is the most bytes of a text in a comparison.
	comparedTextMax = 16 << 10
	// stepsBefore and stepsAfter are the most steps of an answer before and after the first difference.
	stepsBefore = 10
	stepsAfter  = 20
)

// RunComparison is the comparison of two runs, with the steps of one agent around their first difference.
type RunComparison struct {
	compare.Comparison
	Steps []compare.Pair `json:"steps"`
}

// getComparison is GET /api/v1/runs/{id}/comparison: with the run that with=RUN names. Runs are compared one pair at a time for each token.
func getComparison(c *client.Client) runHandler {
	turn := make(chan struct{}, 1)
	return func(w http.ResponseWriter, r *http.Request, run string) {
		q := queryReader{values: r.URL.Query()}
		with := q.text("with")
		if with == "" {
			q.fail("with", "a run")
		}
		if !q.accept(w, "with") {
			return
		}
		other, err := c.FindRun(r.Context(), with)
		if err != nil {
			refuseError(w, err)
			return
		}
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-r.Context().Done():
			refuseError(w, r.Context().Err())
			return
		}
		doc, err := compareRuns(r.Context(), c, run, other)
		answer(w, doc, err)
	}
}

func compareRuns(ctx context.Context, c *client.Client, ids ...string) (doc RunComparison, err error) {
	var sides [2]compare.Run
	for i, id := range ids {
		if sides[i], err = readCompared(ctx, c, id); err != nil {
			return doc, err
		}
	}
	doc = RunComparison{compare.Runs(sides[0], sides[1]), []compare.Pair{}}
	for _, p := range doc.Around(stepsBefore, stepsAfter) {
		p.A, p.B = clip.Text(p.A, comparedTextMax), clip.Text(p.B, comparedTextMax)
		doc.Steps = append(doc.Steps, p)
	}
	for _, text := range []*string{&doc.A.Text, &doc.B.Text, &doc.Text} {
		*text = clip.Text(*text, comparedTextMax)
	}
	if d := doc.First; d != nil {
		d.A, d.B = clip.Text(d.A, comparedTextMax), clip.Text(d.B, comparedTextMax)
	}
	return doc, nil
}

// readCompared reads and replays the logs of a run as they are now.
func readCompared(ctx context.Context, c *client.Client, run string) (compare.Run, error) {
	f := runfile.File{Header: runfile.Header{Run: run}}
	list, err := client.AskLogs(ctx, c, client.LogsRequest{RunID: run})
	if err != nil {
		return compare.Run{}, err
	}
	size := 0
	for _, at := range list.Logs {
		request := client.LogsRequest{RunID: run, Log: at}
		for more := true; more; {
			page, err := client.AskLogs(ctx, c, request)
			if err != nil {
				return compare.Run{}, err
			}
			for _, e := range page.Entries {
				f.Entries = append(f.Entries, mailbox.Message{To: at, Place: e.Place, At: e.At, Nanos: e.Nanos, Data: e.Data})
				request.After, size = e.Place, size+len(e.Data)
			}
			if size > comparedBytesMax {
				return compare.Run{}, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the logs of %s have more than %d MiB", run, comparedBytesMax>>20), Hint: "`troupe compare` has no such limit"}
			}
			more = page.More && len(page.Entries) > 0
		}
	}
	side, err := compare.ReadRun(f)
	if err != nil {
		return side, &client.Error{Code: client.CodeConflict, Text: err.Error(), Hint: "`troupe verify " + run + "` shows what is wrong"}
	}
	return side, nil
}
