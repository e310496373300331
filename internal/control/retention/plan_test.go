package retention

import (
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
)

// retainRow is a row of a run that ended some hours before the tests' now; hours 0: it has not ended.
func retainRow(run string, hours int, now time.Time) runindex.Row {
	row := runindex.Row{RunInfo: client.RunInfo{RunID: run, State: client.RunFinished}}
	if hours == 0 {
		row.State = client.RunParked
		row.Started = now.Add(-10_000 * time.Hour).Format(time.RFC3339)
		return row
	}
	row.Ended = now.Add(-time.Duration(hours) * time.Hour).Format(time.RFC3339)
	return row
}

// TestRetentionDecides is the table of what retention removes, in which order and why. Each removal makes the stores
// smaller by 10 bytes, one entry and one row.
//
//behaviour:shows K17
func TestRetentionDecides(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const day = 24
	crowded, calm := storeUse{71, 100}, storeUse{70, 100}
	month := limits{age: 30 * day * time.Hour, bytes: 100}
	type run struct {
		id    string
		hours int
	}
	for name, c := range map[string]struct {
		limits limits
		runs   []run
		use    storageUse
		change func(*endedRun)
		want   []string
	}{
		"nothing is old or large":          {month, []run{{"a", 1}, {"b", 30*day - 1}}, storageUse{bytes: 100, logs: calm, index: calm, blobs: calm}, nil, nil},
		"old runs, those that ended first": {month, []run{{"a", 30 * day}, {"b", 40 * day}, {"c", 1}}, storageUse{}, nil, []string{"b age", "a age"}},
		"what has not ended stays":         {month, []run{{"a", 0}, {"b", 50 * day}, {"c", 0}}, storageUse{bytes: 1000, logs: crowded}, nil, []string{"b age"}},
		"too many bytes":                   {month, []run{{"a", 2}, {"b", 4}, {"c", 3}, {"d", 5}}, storageUse{bytes: 115}, nil, []string{"d size", "b size"}},
		"age first, which may make room":   {month, []run{{"a", 40 * day}, {"b", 2}, {"c", 50 * day}}, storageUse{bytes: 115}, nil, []string{"c age", "a age"}},
		"a result can be read for an hour": {month, []run{{"a", 1}, {"b", 2}}, storageUse{bytes: 1000, logs: crowded, index: crowded, blobs: crowded}, func(r *endedRun) { r.ended = r.ended.Add(time.Minute) }, []string{"b size"}},
		"logs nearly full":                 {month, []run{{"a", 2}, {"b", 3}}, storageUse{logs: crowded}, nil, []string{"b logs"}},
		"index nearly full":                {month, []run{{"a", 2}, {"b", 3}}, storageUse{index: crowded}, nil, []string{"b index"}},
		"blobs nearly full":                {month, []run{{"a", 2}, {"b", 3}}, storageUse{blobs: crowded}, nil, []string{"b blobs"}},
		"only what helps":                  {month, []run{{"a", 2}, {"b", 3}}, storageUse{logs: crowded, blobs: crowded}, func(r *endedRun) { r.noLogs, r.noBlobs = true, r.RunID == "b" }, []string{"a blobs"}},
		"the history that a conversation continues with goes last": {month, []run{{"a", 5}, {"b", 4}, {"c", 3}}, storageUse{bytes: 115}, func(r *endedRun) { r.last = r.RunID == "a" }, []string{"b size", "c size"}},
		"what stays in this pass":                                  {month, []run{{"a", 40 * day}, {"b", 50 * day}}, storageUse{}, func(r *endedRun) { r.done = r.RunID == "b" }, []string{"a age"}},
		"a removal that was cut short":                             {month, []run{{"a", 40 * day}, {"b", 1}}, storageUse{}, func(r *endedRun) { r.Removing = r.RunID == "b" }, []string{"b unfinished", "a age"}},
		"a store without a limit":                                  {month, []run{{"a", 3}}, storageUse{logs: storeUse{used: 1 << 40}}, nil, nil},
		"no limit of age":                                          {limits{bytes: 100}, []run{{"a", 1000 * day}}, storageUse{bytes: 100}, nil, nil},
		"no limit of size":                                         {limits{age: month.age}, []run{{"a", 3}}, storageUse{bytes: 1000, logs: crowded, index: crowded, blobs: crowded}, nil, nil},
		"no limit, but what was cut short":                         {limits{}, []run{{"a", 1000 * day}, {"b", 3}}, storageUse{bytes: 1000}, func(r *endedRun) { r.Removing = r.RunID == "b" }, []string{"b unfinished"}},
		"a clock that was set back":                                {month, []run{{"a", -40 * day}}, storageUse{bytes: 1000}, nil, nil},
		"the defaults: 30 days":                                    {newLimits(0, 0), []run{{"a", 30 * day}, {"b", 30*day - 1}}, storageUse{bytes: 2 << 30}, nil, []string{"a age"}},
		"the defaults: 2 GiB":                                      {newLimits(0, 0), []run{{"a", 3}, {"b", 4}}, storageUse{bytes: 2<<30 + 1}, nil, []string{"b size"}},
		"negative limits are none":                                 {newLimits(-1, -1), []run{{"a", 3000 * day}}, storageUse{bytes: 1 << 40, logs: crowded}, nil, nil},
		"equal ends go by the order of ids":                        {month, []run{{"b", 31 * day}, {"a", 31 * day}}, storageUse{}, nil, []string{"a age", "b age"}},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []runindex.Row
			for _, r := range c.runs {
				rows = append(rows, retainRow(r.id, r.hours, now))
			}
			list := listRemovable(rows)
			for i := range list {
				if c.change != nil {
					c.change(&list[i])
				}
			}
			var got []string
			for {
				i, why := c.limits.next(list, c.use, now)
				if i < 0 {
					break
				}
				got = append(got, list[i].RunID+" "+why)
				list[i].done = true
				c.use.bytes -= min(c.use.bytes, 10)
				for _, u := range []*storeUse{&c.use.logs, &c.use.index, &c.use.blobs} {
					u.used -= min(u.used, 1)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("it removes %q, want %q", got, c.want)
			}
		})
	}
}

// TestEndOfARow: the end that the row names counts; an older row has only a start and a duration.
func TestEndOfARow(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	info := client.RunInfo{State: client.RunFinished, Started: start.Format(time.RFC3339)}
	runindex.FinishRow(&info, event.Result{DurationMS: 60_000}, start.Add(time.Hour))
	if end, ok := runindex.EndOf(info); !ok || !end.Equal(start.Add(time.Hour)) {
		t.Errorf("%s %t", end, ok)
	}
	runindex.FinishRow(&info, event.Result{DurationMS: 60_000}, start.Add(2*time.Hour)) // another node reports the same end
	if end, ok := runindex.EndOf(info); !ok || !end.Equal(start.Add(time.Hour)) {
		t.Errorf("reported twice: %s %t", end, ok)
	}
	info.Ended = ""
	if end, ok := runindex.EndOf(info); !ok || !end.Equal(start.Add(time.Minute)) {
		t.Errorf("without an end: %s %t", end, ok)
	}
}
