package retention

import (
	"cmp"
	"slices"
	"time"

	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/mailbox"
)

// Defaults and limits of retention.
const (
	retainAgeDefault   = 30 * 24 * time.Hour
	retainBytesDefault = 2 << 30
	// retainPercent is how full the logs, the index or the blobs may be before the oldest runs go: less than
	// mailbox.RoomPercent, from which on new runs are refused.
	retainPercent = mailbox.RoomPercent - 10
	// retainLeast is how long a run that has ended stays whatever room there is, so that clients can read its result.
	retainLeast = time.Hour
)

// Why retention removes a run, as event.RunRemoved says it.
const (
	removedUnfinished = "unfinished" // an earlier removal did not come to its end
	removedByAge      = "age"
	removedBySize     = "size"
	removedForLogs    = "logs"
	removedForIndex   = "index"
	removedForBlobs   = "blobs"
)

// limits are the limits of retention; 0 means no limit.
type limits struct {
	age   time.Duration
	bytes uint64
}

// newLimits resolves the limits of a Config: 0 is the default, and a negative one no limit.
func newLimits(age time.Duration, bytes int64) limits {
	return limits{age: max(0, cmp.Or(age, retainAgeDefault)), bytes: uint64(max(0, cmp.Or(bytes, retainBytesDefault)))}
}

// storeUse is how full a store is; most 0 means no limit.
type storeUse struct{ used, most uint64 }

func (u storeUse) isCrowded() bool { return u.most > 0 && u.used*100 > u.most*retainPercent }

// storageUse is what the stores hold.
type storageUse struct {
	bytes              uint64 // of all logs and blobs
	logs, index, blobs storeUse
}

// endedRun is a run that retention may remove.
type endedRun struct {
	runindex.Row
	ended time.Time // zero: unknown
	done  bool      // it was removed, or it stays in this pass
	last  bool      // it goes for want of room only after all others
	// noLogs says that none of its logs is in the fullest part of the logs, noBlobs that it has no blobs.
	noLogs, noBlobs bool
}

// listRemovable returns the runs that may go, also those whose removal has begun, in the order of their ends. A run
// that works, waits or is parked is not among them, nor one whose end is unknown.
func listRemovable(rows []runindex.Row) []endedRun {
	var list []endedRun
	for _, row := range rows {
		if end, ok := runindex.EndOf(row.RunInfo); ok || row.Removing {
			list = append(list, endedRun{Row: row, ended: end})
		}
	}
	slices.SortFunc(list, func(a, b endedRun) int { return cmp.Or(a.ended.Compare(b.ended), cmp.Compare(a.RunID, b.RunID)) })
	return list
}

// next returns the run that must go next and why; -1: none must. runs is as listRemovable returns it.
func (l limits) next(runs []endedRun, use storageUse, now time.Time) (i int, why string) {
	isOpen := func(of func(endedRun) bool) int {
		return slices.IndexFunc(runs, func(r endedRun) bool { return !r.done && of(r) })
	}
	if i := isOpen(func(r endedRun) bool { return r.Removing }); i >= 0 {
		return i, removedUnfinished
	}
	if i := isOpen(func(r endedRun) bool { return l.age > 0 && now.Sub(r.ended) >= l.age }); i >= 0 {
		return i, removedByAge
	}
	if l.bytes == 0 {
		return -1, ""
	}
	for _, rule := range []struct {
		broken bool
		why    string
		helps  func(endedRun) bool
	}{
		{use.bytes > l.bytes, removedBySize, func(endedRun) bool { return true }},
		{use.logs.isCrowded(), removedForLogs, func(r endedRun) bool { return !r.noLogs }},
		{use.index.isCrowded(), removedForIndex, func(endedRun) bool { return true }},
		{use.blobs.isCrowded(), removedForBlobs, func(r endedRun) bool { return !r.noBlobs }},
	} {
		if !rule.broken {
			continue
		}
		for _, last := range []bool{false, true} {
			if i := isOpen(func(r endedRun) bool { return r.last == last && now.Sub(r.ended) >= retainLeast && rule.helps(r) }); i >= 0 {
				return i, rule.why
			}
		}
	}
	return -1, ""
}

// countsBlobs reports whether runs may have to go because of what blobs hold.
func (l limits) countsBlobs(use storageUse) bool {
	return l.bytes > 0 && (use.bytes > l.bytes || use.blobs.isCrowded())
}

// isForRoom reports whether a run goes because of what the stores hold.
func isForRoom(why string) bool { return why != removedUnfinished && why != removedByAge }
