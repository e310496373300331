package runfile

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/troupe-run/troupe/mailbox"
)

// readLines is what the reader keeps of the lines, to say where a file was changed.
type readLines struct {
	entries []int // the line of each entry
	odd     int   // the first line of an entry that is not as troupe writes it; 0: none
}

// note notes the line of an entry, and what was decoded of it.
func (l *readLines) note(line int, data []byte, decoded entryLine) {
	if again, err := json.Marshal(decoded); l.odd == 0 && (err != nil || !bytes.Equal(again, data)) {
		l.odd = line
	}
}

// locate says where a file was changed whose hash does not fit, as far as that can be known: by how a line is
// written, by the hashes that entries carry of those before them, and by an entry that does not decode. It
// returns the first such line.
func (r *reader) locate() (line int, text string) {
	if r.lines.odd > 0 {
		return r.lines.odd, "the file was changed in this line: it is not as troupe writes it"
	}
	logs, order := map[mailbox.Address]*locatedLog{}, []*locatedLog(nil)
	for i, m := range r.file.Entries {
		l := logs[m.To]
		if l == nil {
			l = &locatedLog{at: m.To}
			logs[m.To] = l
			order = append(order, l)
		}
		if l.read(m, r.lines.entries[i]); l.carrier > 0 {
			return l.changed()
		}
	}
	rest := 0 // entries that no hash in a log covers
	for _, l := range order {
		rest += len(l.lines) - l.whole
		if i := l.firstOdd(len(l.lines)); i >= 0 {
			return l.lines[i], l.oddText(i)
		}
	}
	return r.line, fmt.Sprintf("the hash of the lines before it is another one: the file was changed. Its logs do not tell where: in the first line, in a stamp or a place, in this line, "+
		"or in one of the %d entries after those of their log whose hash another entry carries", rest)
}

// locatedLog is one log of a file, as far as it was read.
type locatedLog struct {
	at     mailbox.Address
	lines  []int // of its entries
	data   [][]byte
	hashes HashChain
	whole  int // how many of its first entries a hash has confirmed

	carrier int // the first entry whose hash does not fit, 0: none
	floor   int // how many entries it covers
}

func (l *locatedLog) read(m mailbox.Message, line int) {
	l.lines, l.data = append(l.lines, line), append(l.data, m.Data)
	l.hashes.Add(m.Data)
	e, err := mailbox.Decode(m.Data)
	switch {
	case err != nil || e.From != m.To || e.Floor == 0:
	case e.Floor >= uint64(len(l.lines)) || !bytes.Equal(e.Hash, l.hashes.Hashes[e.Floor-1]):
		l.carrier, l.floor = len(l.lines), int(min(e.Floor, uint64(len(l.lines)-1)))
	default:
		l.whole = max(l.whole, int(e.Floor))
	}
}

// changed says which entries were changed, if the hash of one of them does not fit.
func (l *locatedLog) changed() (line int, text string) {
	if i := l.firstOdd(l.floor); i >= 0 {
		return l.lines[i], l.oddText(i)
	}
	carrier := l.lines[l.carrier-1]
	if l.floor <= l.whole {
		return carrier, fmt.Sprintf("the file was changed in this line: the hash in entry %d of %s is not that of the %d entries before it, which others confirm", l.carrier, l.at, l.floor)
	}
	first, last := l.lines[l.whole], l.lines[l.floor-1]
	return first, fmt.Sprintf("the file was changed, in one of the entries %d to %d of %s (lines %d to %d), or in entry %d (line %d), which carries their hash",
		l.whole+1, l.floor, l.at, first, last, l.carrier, carrier)
}

// firstOdd returns the first of the unconfirmed entries up to a number that does not decode, or is not as
// troupe writes it; -1: none.
func (l *locatedLog) firstOdd(through int) int {
	for i := l.whole; i < through; i++ {
		e, err := mailbox.Decode(l.data[i])
		if err != nil {
			return i
		}
		if again, err := mailbox.Encode(e); err != nil || !bytes.Equal(again, l.data[i]) {
			return i
		}
	}
	return -1
}

func (l *locatedLog) oddText(i int) string {
	_, err := mailbox.Decode(l.data[i])
	why := "it is not as troupe writes it"
	if err != nil {
		why = "it does not decode: " + err.Error()
	}
	return fmt.Sprintf("the file was changed in this line, which is entry %d of %s: %s", i+1, l.at, why)
}
