package runindex

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/troupe-run/troupe/client"
)

// seenMax is how many runs an ownIndex remembers before it begins anew.
const seenMax = 1 << 16

// ownIndex is what a node that owns all logs knows of the index without reading it: no other process writes
// rows. The zero value knows nothing.
type ownIndex struct {
	mu sync.Mutex
	// since is the time from which on the ids of all runs with a row are in seen; zero: nothing is
	// known, because other nodes write rows.
	since time.Time
	// hasForgotten: this process has written rows before since, of runs that are not in seen any more.
	hasForgotten bool
	seed         maphash.Seed
	seen         map[uint64]struct{} // hashes of ids: one that collides is read from the index
	// unwritten are the rows of runs that were opened and are written a moment later.
	unwritten map[string]*unwrittenRow
}

type unwrittenRow struct {
	Row
	removed bool // its run was deleted, perhaps while the row is written
}

// OwnAlone tells the index that this process alone writes it until it ends.
func (r *Index) OwnAlone() {
	o := &r.own
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seed = maphash.MakeSeed()
	o.beginAnew()
}

// beginAnew forgets the runs that were seen. The caller holds mu.
func (o *ownIndex) beginAnew() {
	// An id is made a moment before its request arrives, and only to the millisecond.
	o.since, o.seen = time.Now(), map[uint64]struct{}{}
}

// note records that a run has a row, or had one.
func (o *ownIndex) note(run string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.noteLocked(run)
}

func (o *ownIndex) noteLocked(run string) {
	if o.since.IsZero() {
		return
	}
	if len(o.seen) >= seenMax {
		o.beginAnew()
		o.hasForgotten = true
	}
	o.seen[maphash.String(o.seed, run)] = struct{}{}
}

// hasNoRow reports whether a run certainly has no row: its id was made after this process began to
// own the index, and no row of it was written since.
func (o *ownIndex) hasNoRow(run string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isMadeSince(run) && !o.isSeen(run)
}

// isMadeSince reports whether the id of a run says that it was made after since. The caller holds mu.
func (o *ownIndex) isMadeSince(run string) bool {
	id, err := ulid.ParseStrict(strings.ToUpper(run))
	return err == nil && !o.since.IsZero() && ulid.Time(id.Time()).After(o.since)
}

// HasNoRow reports whether a run certainly has no row; see ownIndex.hasNoRow.
func (r *Index) HasNoRow(run string) bool { return r.own.hasNoRow(run) }

// isSeen reports whether a run may have a row that was written since. The caller holds mu.
func (o *ownIndex) isSeen(run string) bool {
	if o.since.IsZero() {
		return true
	}
	_, seen := o.seen[maphash.String(o.seed, run)]
	return seen
}

// NoteOpened adds the row of a run that was just opened. The row is in all lists from now on, and the node of the run
// writes it soon. NoteOpened returns false if the run may have a row already: a short run may have ended meanwhile.
func (r *Index) NoteOpened(info client.RunInfo) bool {
	o := &r.own
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isSeen(info.RunID) || o.hasForgotten && !o.isMadeSince(info.RunID) {
		return false
	}
	if o.unwritten == nil {
		o.unwritten = map[string]*unwrittenRow{}
	}
	o.unwritten[info.RunID] = &unwrittenRow{Row: Row{RunInfo: info}}
	o.noteLocked(info.RunID)
	return true
}

// findUnwritten returns the row of a run that is not written yet.
func (o *ownIndex) findUnwritten(run string) (row Row, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.unwritten[run]
	if u == nil {
		return row, false
	}
	return u.Row, true
}

// beginWrite returns the row of a run that is not written yet. nil: there is none. The run counts as one with a row
// from now on, because the caller writes it.
func (o *ownIndex) beginWrite(run string) *unwrittenRow {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.unwritten[run]
	if u == nil {
		o.noteLocked(run)
	}
	return u
}

// endWrite forgets a row that is in the index now, and reports whether its run was deleted meanwhile.
func (o *ownIndex) endWrite(run string, u *unwrittenRow) (removed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unwritten[run] == u {
		delete(o.unwritten, run)
	}
	return u.removed
}

// removeUnwritten forgets the row of a run that is deleted.
func (o *ownIndex) removeUnwritten(run string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if u := o.unwritten[run]; u != nil {
		u.removed = true
		delete(o.unwritten, run)
	}
}

// rawUnwritten are the rows that are wanted and not written yet.
func (o *ownIndex) rawUnwritten(wanted func(run string) bool) map[string]RawRow {
	o.mu.Lock()
	rows := maps.Clone(o.unwritten)
	o.mu.Unlock()
	raw := map[string]RawRow{}
	for run, u := range rows {
		data, err := json.Marshal(u.Row)
		if err == nil && wanted(run) {
			raw[run] = RawRow{run, data}
		}
	}
	return raw
}
