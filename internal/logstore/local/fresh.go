package local

import (
	"sort"

	"github.com/troupe-run/troupe/mailbox"
)

// freshEntry is one entry that is not in the table yet.
type freshEntry struct {
	place uint64
	value []byte
}

// freshLog is the part of one log that is not in the table yet.
type freshLog struct {
	entries []freshEntry
	// purged: the entries with smaller places are gone, here and in the table.
	purged uint64
	// older says that the log had entries before the first of these. It does not change.
	older bool
	// last is the place of the newest entry, also of one that is being written.
	last uint64
}

// fresh is the part of all logs that is not in the table yet, in order of place: from the oldest
// segment of the write-ahead log that holds it up to the place through.
type fresh struct {
	logs     map[mailbox.Address]*freshLog
	bytes    int
	through  uint64
	segments []uint64
}

func newFresh() *fresh { return &fresh{logs: map[mailbox.Address]*freshLog{}} }

// add adds an entry.
func (f *fresh) add(l *freshLog, place uint64, value []byte) {
	l.entries = append(l.entries, freshEntry{place, value})
	f.bytes += len(value)
	f.through = place
}

// purge removes the entries of a log before a place; freed is how many bytes of data they had.
func (f *fresh) purge(to mailbox.Address, l *freshLog, place, before uint64) (freed uint64) {
	f.through = place
	l.purged = max(l.purged, before)
	first := sort.Search(len(l.entries), func(i int) bool { return l.entries[i].place >= before })
	for _, e := range l.entries[:first] {
		freed += entryCost(to, len(e.value)-valueBytes)
	}
	// Readers may hold the old slice.
	l.entries = append([]freshEntry(nil), l.entries[first:]...)
	return freed
}

// freshPart returns the entries with places in (after, through].
func freshPart(entries []freshEntry, after, through uint64) []freshEntry {
	first := sort.Search(len(entries), func(i int) bool { return entries[i].place > after })
	end := sort.Search(len(entries), func(i int) bool { return entries[i].place > through })
	return entries[first:max(first, end)]
}

// listLogs sets the newest places of the logs of a run, and of all runs without one, and the places
// before which they are purged. Parts that are in the table are left out.
func (f *fresh) listLogs(run string, folded uint64, newest, purged map[mailbox.Address]uint64) {
	if f == nil || f.through <= folded {
		return
	}
	for at, l := range f.logs {
		if run != "" && at.Run() != run {
			continue
		}
		if l.purged > 0 {
			purged[at] = max(purged[at], l.purged)
		}
		if n := len(l.entries); n > 0 {
			newest[at] = l.entries[n-1].place
		}
	}
}

// message is the entry as readers receive it.
func (e freshEntry) message(to mailbox.Address) mailbox.Message {
	v := readValue(e.value)
	return messageOf(to, e.place, v)
}

// messageOf is an entry as readers receive it. An entry that was lost has no data.
func messageOf(to mailbox.Address, place uint64, e entry) mailbox.Message {
	m := mailbox.Message{To: to, Place: place, At: e.at, Data: e.data, Imported: e.flags&flagImported != 0}
	if e.flags&flagLost != 0 {
		m.Data = nil
	}
	return m
}
