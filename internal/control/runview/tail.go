package runview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// tailMax is how many entries after the Summary of a row a request reads before it replays the
// log instead: more than activation.StateGap, because a node writes the row a moment later.
const tailMax = 4 * activation.StateGap

// summaryTail is what the supervisor's log holds after the Summary of a row.
type summaryTail struct {
	entries int
	changed int  // entries that may change the Summary
	lost    bool // the log no longer holds the entry up to which the Summary was made
}

// readSummaryTail reads the supervisor's log from the last entry that a Summary knows.
func readSummaryTail(ctx context.Context, post mailbox.Store, row runindex.Row) (t summaryTail, err error) {
	at := mailbox.At(row.RunID, mailbox.Super)
	t.lost = true
	err = post.Read(ctx, at, row.Summary.Place-1, 0, func(m mailbox.Message) error {
		if m.Place == row.Summary.Place {
			t.lost = false
			return nil
		}
		if t.lost {
			return runlog.ErrEnough
		}
		e, err := mailbox.Decode(m.Data)
		if errors.Is(err, mailbox.ErrForm) {
			return refuse.NewerLog(at)
		}
		if err != nil || slices.ContainsFunc(e.Items, func(item mailbox.Item) bool { return mayChange(*row.Summary, item) }) {
			t.changed++
		}
		if t.entries++; t.entries > tailMax {
			return runlog.ErrEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, runlog.ErrEnough) {
		return t, fmt.Errorf("control: read %s: %w", at, err)
	}
	return t, nil
}

// quietKinds are the entries of a supervisor's log that change no Summary. Those of moneyKinds change
// one only if
//   - the entry is an agent's first message, which names the agent's node;
//   - an agent waits for a person, because the entry may end supervisor.State.IsParked;
//   - the entry shows that a log has lost its tail, which cancels the run: a Reserve or ReturnAllowance
//     of an old number, or a Settle beyond the newest reservation.
//
// A row does not hold what tells the first and third case from others: the request sees the change
// once a node has read the entry and written the row, or after tailMax entries.
var (
	quietKinds = kindsOf(agent.Send{}, agent.Backlog{}, agent.ProposeStop{}, agent.Released{}, agent.Checkpoint{}, agent.Closed{},
		supervisor.PolicySet{}, supervisor.LimitSet{}, supervisor.SubtreeLimitSet{}, supervisor.PermissionsSet{}, supervisor.BacklogSet{})
	moneyKinds = kindsOf(agent.Reserve{}, agent.Settle{}, agent.ReturnAllowance{})
)

func kindsOf(facts ...supervisor.Fact) map[string]bool {
	kinds := map[string]bool{}
	for _, f := range facts {
		kinds[f.Kind()] = true
	}
	return kinds
}

// mayChange reports whether an item of an entry may change the Summary.
func mayChange(s runindex.RowSummary, item mailbox.Item) bool {
	return !quietKinds[item.Kind] && (!moneyKinds[item.Kind] || len(s.Questions) > 0 || s.QuestionsCut)
}
