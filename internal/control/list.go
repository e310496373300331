package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// verifiedRowsMax is how many runs of a list are verified by their logs; the others, older ones,
// are shown as the index has them.
const verifiedRowsMax = 64

// listRuns returns the newest runs that a request selects, as many as fit a reply.
func (c *viewer) listRuns(ctx context.Context, r client.ListRequest) (any, error) {
	f, err := newRunFilter(r)
	if err != nil {
		return nil, err
	}
	rows, err := c.cfg.Runs.RawRows(ctx, f.wantsID)
	if err != nil {
		return nil, err
	}
	rows = f.olderRows(rows)
	selected, places := f.selectRows(ctx, rows), c.cfg.Queue.allPlaces()
	looks := c.viewNewest(ctx, selected, places)
	list, size := []client.RunInfo{}, 0
	for _, row := range selected {
		info, err := c.currentInfo(ctx, row, places[row.RunID], looks)
		if err != nil {
			return nil, err
		}
		if r.State != "" && info.State != r.State {
			continue
		}
		b, err := json.Marshal(info)
		if err != nil {
			return nil, fmt.Errorf("control: list: %w", err)
		}
		if size += len(b); size > bounds.ReplyBytes {
			break
		}
		if list = append(list, info); len(list) == r.Limit {
			break
		}
	}
	return list, nil
}

// infoBytesMin is less than any row of a list takes in a reply.
const infoBytesMin = 64

// selectRows returns the rows that a reply may hold, but for their states.
func (f runFilter) selectRows(ctx context.Context, rows []runindex.RawRow) (selected []runindex.Row) {
	most := len(rows)
	if f.r.State == "" {
		most = min(most, bounds.ReplyBytes/infoBytesMin, cmp.Or(f.r.Limit, most))
	}
	for _, raw := range rows {
		if len(selected) == most {
			break
		}
		if row, ok := raw.Decode(); ok && !row.Removing && ownsRow(ctx, row) && f.wantsStart(row.Started) {
			selected = append(selected, row)
		}
	}
	return selected
}

// viewNewest looks at the newest runs of a list whose rows may not know their state, by their ids.
func (c *viewer) viewNewest(ctx context.Context, rows []runindex.Row, places map[string]int) map[string]runview.Result {
	var open []runindex.Row
	for _, row := range rows {
		if row.State != client.RunFinished && !c.cfg.Runs.IsElsewhere(row) && places[row.RunID] == 0 && len(open) < verifiedRowsMax {
			open = append(open, row)
		}
	}
	looks := make(map[string]runview.Result, len(open))
	for i, r := range c.views.ViewAll(ctx, open, nil) {
		looks[open[i].RunID] = r
	}
	return looks
}

// currentInfo is a row as a list shows it. looks are those at the runs whose logs were read.
func (c *viewer) currentInfo(ctx context.Context, row runindex.Row, place int, looks map[string]runview.Result) (client.RunInfo, error) {
	info := withPosition(row.RunInfo, place)
	if row.State == client.RunFinished || info.Position > 0 {
		return info, nil
	}
	if c.cfg.Runs.IsElsewhere(row) {
		info.State, info.ContinueWith = client.RunInterrupted, "start `troupe up`, which has run it"
		if row.LogStore == statedir.LogsInFiles {
			info.ContinueWith = "stop `troupe up`, or the server, then: troupe run --resume " + row.RunID
		}
		return info, nil
	}
	r, ok := looks[row.RunID]
	switch {
	case !ok:
		r.View = runview.View{Row: row, Summary: row.SummaryOrEmpty()}
	case refuse.IsNewer(r.Err):
		return info, nil // only the row can be shown
	case r.Err != nil:
		return info, r.Err
	}
	if info.State = c.shownState(r.View.State(), r.View.Summary); info.State != client.RunFinished {
		if spend := r.View.Summary.Spend; spend.Budget.Limit > 0 { // a row without a Summary has none
			info.Spend = &spend
		}
		return info, nil
	}
	if r.View.Replayed != nil { // the row does not know its end yet
		return runindex.Summarize(withState(row, *r.View.Replayed)), nil
	}
	s, err := runlog.ReplaySupervisor(ctx, c.cfg.Post, row.RunID)
	if err != nil {
		return info, err
	}
	return runindex.Summarize(withState(row, s)), nil
}

// shownState is the state of a run, which is client.RunInterrupted if no node is there to continue it.
func (c *viewer) shownState(state client.RunState, s supervisor.Summary) client.RunState {
	if (state == client.RunLive || state == client.RunQueued) && !c.hasNode(s) {
		return client.RunInterrupted
	}
	return state
}

// hasNode reports whether nodes are there for all agents of a run.
func (c *viewer) hasNode(s supervisor.Summary) bool {
	if c.cfg.Cluster == nil {
		return !c.cfg.NoActors
	}
	served := map[string]bool{}
	for _, n := range c.cfg.Cluster.Nodes() {
		for pool := range n.Pools {
			served[pool] = true
		}
	}
	return !slices.ContainsFunc(s.Agents, func(a supervisor.AgentSummary) bool {
		return !served[cmp.Or(a.Pool, names.DefaultPool)]
	})
}

// runFilter is the selection of a ListRequest.
type runFilter struct {
	r     client.ListRequest
	since time.Time
}

// runStates are the states that a list can be limited to.
var runStates = []client.RunState{client.RunLive, client.RunQueued, client.RunParked, client.RunFinished, client.RunInterrupted}

func newRunFilter(r client.ListRequest) (f runFilter, err error) {
	f.r = r
	switch {
	case r.State != "" && !slices.Contains(runStates, r.State):
		return f, badListField("state", string(r.State), "one of "+refuse.JoinWords(runStates))
	case r.Limit < 0:
		return f, badListField("limit", fmt.Sprint(r.Limit), "0 is as many as fit a reply")
	case r.Prefix != "" && names.CheckToken(r.Prefix) != nil:
		return f, badListField("prefix", r.Prefix, "the first characters of run ids")
	}
	if r.Since != "" {
		if f.since, err = time.Parse(time.RFC3339, r.Since); err != nil {
			return f, badListField("since", r.Since, "a time as 2026-01-02T03:04:05Z")
		}
	}
	return f, nil
}

func badListField(field, value, hint string) error {
	return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("%s is %.80q", field, value), Hint: hint}
}

func (f runFilter) wantsID(run string) bool { return strings.HasPrefix(run, f.r.Prefix) }

// olderRows returns the rows of the runs that are older than the one of Before. If that one was deleted meanwhile,
// its id says when it began.
func (f runFilter) olderRows(rows []runindex.RawRow) []runindex.RawRow {
	if f.r.Before == "" {
		return rows
	}
	if i := slices.IndexFunc(rows, func(row runindex.RawRow) bool { return row.Run == f.r.Before }); i >= 0 {
		return rows[i+1:]
	}
	start := runindex.RawRow{Run: f.r.Before}.StartKey()
	return slices.DeleteFunc(rows, func(row runindex.RawRow) bool { return row.StartKey() >= start })
}

// wantsStart reports whether a run with this start is selected. A start that is missing is old.
func (f runFilter) wantsStart(started string) bool {
	if f.since.IsZero() {
		return true
	}
	t, err := time.Parse(time.RFC3339, started)
	return err == nil && !t.Before(f.since)
}
