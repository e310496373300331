package local

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/troupe-run/troupe/mailbox"
)

// partEntries and partBytes are how much of a log is read at once. The caller is called between
// the parts, so that it holds no transaction of the table.
const (
	partEntries = 512
	partBytes   = 1 << 20
)

// Read implements mailbox.Post.
func (s *Store) Read(ctx context.Context, at mailbox.Address, after, through uint64, each func(mailbox.Message) error) error {
	end := s.lastVisible()
	if through > 0 {
		end = min(end, through)
	}
	for more := true; more && after < end; {
		part, left, err := s.readPart(at, after, end)
		if err != nil {
			return fmt.Errorf("local: read %s: %w", at, err)
		}
		for _, m := range part {
			if ctx.Err() != nil {
				return fmt.Errorf("local: read %s: %w", at, context.Cause(ctx))
			}
			if err := each(m); err != nil {
				return err
			}
			after = m.Place
		}
		more = left
	}
	if ctx.Err() != nil {
		return fmt.Errorf("local: read %s: %w", at, context.Cause(ctx))
	}
	return nil
}

// lastVisible returns the place of the newest entry that readers may see: those after it may be lost by a
// power failure.
func (s *Store) lastVisible() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.end
}

// logView is one log at one moment: what is in memory, and a transaction of the table if the
// table has entries of it.
type logView struct {
	at     mailbox.Address
	layers [2][]freshEntry // from the oldest
	purged uint64
	tx     *bbolt.Tx
}

// viewLog calls do with a view of a log. do must not take mu.
func (s *Store) viewLog(at mailbox.Address, do func(logView) error) error {
	return guardTable(func() error {
		v, err := s.takeView(at)
		if err != nil {
			return err
		}
		if v.tx != nil {
			defer func() { _ = v.tx.Rollback() }() // it only ends a transaction that reads
		}
		return do(v)
	})
}

// takeView reads the layers and begins the transaction under one lock, so that an entry which moves
// into the table meanwhile is neither missed nor counted twice.
func (s *Store) takeView(at mailbox.Address) (v logView, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v.at = at
	var frozen *freshLog
	if s.frozen != nil {
		frozen = s.frozen.logs[at]
	}
	active := s.active.logs[at]
	oldest := frozen
	if oldest == nil {
		oldest = active
	}
	if oldest == nil || oldest.older {
		if v.tx, err = s.table.db.Begin(false); err != nil {
			return v, err
		}
	}
	if frozen != nil && (v.tx == nil || metaNumber(v.tx, foldedKey) < s.frozen.through) {
		v.layers[0], v.purged = frozen.entries, frozen.purged
	}
	if active != nil {
		v.layers[1], v.purged = active.entries, max(v.purged, active.purged)
	}
	return v, nil
}

// first returns the least place that is not purged.
func (v logView) first() uint64 {
	if v.tx == nil {
		return v.purged
	}
	r, _ := readRow(v.tx, v.at)
	return max(v.purged, r.purged)
}

// newest returns the place of the newest entry; 0: there is none.
func (v logView) newest() uint64 {
	for _, layer := range []int{1, 0} {
		if n := len(v.layers[layer]); n > 0 && v.layers[layer][n-1].place >= v.purged {
			return v.layers[layer][n-1].place
		}
	}
	if v.tx != nil {
		if r, ok := readRow(v.tx, v.at); ok && r.last >= v.purged {
			return r.last
		}
	}
	return 0
}

// count returns the number of entries.
func (v logView) count() (n uint64) {
	for _, layer := range v.layers {
		n += uint64(len(freshPart(layer, max(v.purged, 1)-1, math.MaxUint64)))
	}
	if v.tx == nil {
		return n
	}
	r, ok := readRow(v.tx, v.at)
	switch {
	case !ok || v.purged > r.last:
		return n
	case v.purged <= r.purged:
		return n + r.entries
	}
	c := v.tx.Bucket(entriesBucket).Cursor()
	for k, _ := c.Seek(entryKey(v.at, v.purged)); isOf(k, v.at); k, _ = c.Next() {
		n++
	}
	return n
}

// partReader collects a part of a log, and finds what is missing between its entries.
type partReader struct {
	at      mailbox.Address
	known   uint64 // no entry is missing up to this place
	part    []mailbox.Message
	bytes   int
	damaged []uint64
}

// add adds the next entry. The entry names the place of the one before it.
func (p *partReader) add(place uint64, e entry) {
	p.addMissing(e.previous, e.at)
	p.known = place
	m := messageOf(p.at, place, e)
	if e.flags&flagLost != 0 {
		p.damaged = append(p.damaged, place)
	}
	p.part = append(p.part, m)
	p.bytes += len(m.Data)
}

// addMissing adds an entry without data in the place of one that should be there and is not, so that
// the reader of the log sees the damage instead of a shorter log.
func (p *partReader) addMissing(place uint64, at int64) {
	if place <= p.known {
		return
	}
	p.known = place
	p.damaged = append(p.damaged, place)
	p.part = append(p.part, mailbox.Message{To: p.at, Place: place, At: at})
}

func (p *partReader) isFull() bool { return len(p.part) >= partEntries || p.bytes >= partBytes }

// readPart reads the next entries of a log with places in (after, end]; more says that others may
// follow them.
func (s *Store) readPart(at mailbox.Address, after, end uint64) (part []mailbox.Message, more bool, err error) {
	var p partReader
	err = s.viewLog(at, func(v logView) error {
		p = partReader{at: at, known: max(after, max(v.first(), 1)-1)}
		more = p.readView(v, end)
		return nil
	})
	for _, place := range p.damaged {
		s.damage.report(at, place)
	}
	return p.part, more, err
}

// readView reads the table first, then the layers, which hold later entries. A newest entry that is in
// none of them is missing.
func (p *partReader) readView(v logView, end uint64) (more bool) {
	after := p.known
	if v.tx != nil {
		c := v.tx.Bucket(entriesBucket).Cursor()
		for k, value := c.Seek(entryKey(v.at, after+1)); isOf(k, v.at) && placeOf(k) <= end; k, value = c.Next() {
			if p.isFull() {
				return true
			}
			if e, ok := openValue(v.at, placeOf(k), value); ok {
				e.data = bytes.Clone(e.data)
				p.add(placeOf(k), e)
			}
		}
	}
	for _, layer := range v.layers {
		for _, e := range freshPart(layer, max(p.known, after), end) {
			if p.isFull() {
				return true
			}
			p.add(e.place, readValue(e.value))
		}
	}
	if newest := v.newest(); newest <= end {
		p.addMissing(newest, 0)
	}
	return false
}

// ReadRun implements mailbox.Store, one log after the other.
func (s *Store) ReadRun(ctx context.Context, run string, each func(mailbox.Message) error) error {
	logs, err := s.Addresses(ctx, run)
	for _, at := range logs {
		if err != nil {
			break
		}
		err = s.Read(ctx, at, 0, 0, each)
	}
	return err
}

// Addresses implements mailbox.Post; they are sorted.
func (s *Store) Addresses(_ context.Context, run string) ([]mailbox.Address, error) {
	newest, purged := map[mailbox.Address]uint64{}, map[mailbox.Address]uint64{}
	err := guardTable(func() error {
		tx, err := s.listFresh(run, newest, purged)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // it only ends a transaction that reads
		eachRow(tx, run, func(at mailbox.Address) {
			if r, ok := readRow(tx, at); ok {
				newest[at] = max(newest[at], r.last)
			}
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("local: addresses: %w", err)
	}
	maps.DeleteFunc(newest, func(at mailbox.Address, place uint64) bool { return place < purged[at] })
	return slices.Sorted(maps.Keys(newest)), nil
}

// listFresh lists the logs that are not in the table yet, and begins a transaction of the table at
// the same moment.
func (s *Store) listFresh(run string, newest, purged map[mailbox.Address]uint64) (*bbolt.Tx, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	tx, err := s.table.db.Begin(false)
	if err != nil {
		return nil, err
	}
	folded := metaNumber(tx, foldedKey)
	s.frozen.listLogs(run, folded, newest, purged)
	s.active.listLogs(run, folded, newest, purged)
	return tx, nil
}

// eachRow calls do for the logs of a run that the table has rows of, and for all without a run.
func eachRow(tx *bbolt.Tx, run string, do func(mailbox.Address)) {
	c := tx.Bucket(rowsBucket).Cursor()
	if run == "" {
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			do(mailbox.Address(k))
		}
		return
	}
	if k, _ := c.Seek([]byte(run)); string(k) == run {
		do(mailbox.Address(k))
	}
	prefix := run + "."
	for k, _ := c.Seek([]byte(prefix)); strings.HasPrefix(string(k), prefix); k, _ = c.Next() {
		do(mailbox.Address(k))
	}
}

// Heads implements mailbox.Store; they come in the order of their addresses.
func (s *Store) Heads(ctx context.Context, each func(mailbox.Head) error) error {
	logs, err := s.Addresses(ctx, "")
	if err != nil {
		return err
	}
	for _, at := range logs {
		if ctx.Err() != nil {
			return fmt.Errorf("local: heads: %w", context.Cause(ctx))
		}
		h, err := s.head(at)
		switch {
		case err != nil:
			return fmt.Errorf("local: head of %s: %w", at, err)
		case h.Entries == 0: // it was purged meanwhile
			continue
		}
		if err := each(h); err != nil {
			return err
		}
	}
	return nil
}

// head returns the newest entry of a log and the number of its entries.
func (s *Store) head(at mailbox.Address) (h mailbox.Head, err error) {
	err = s.viewLog(at, func(v logView) error {
		newest := v.newest()
		if newest == 0 {
			return nil
		}
		h = mailbox.Head{Message: mailbox.Message{To: at, Place: newest}, Entries: v.count()}
		for _, layer := range v.layers {
			for _, e := range freshPart(layer, newest-1, newest) {
				h.Message = e.message(at)
				return nil
			}
		}
		if e, ok := openValue(at, newest, v.tx.Bucket(entriesBucket).Get(entryKey(at, newest))); ok {
			e.data = bytes.Clone(e.data)
			h.Message = messageOf(at, newest, e)
		}
		return nil
	})
	return h, err
}

// bytesBefore is how many bytes the entries of a log before a place have that are not in the
// active part. mu is held.
func (s *Store) bytesBefore(at mailbox.Address, before uint64) (n uint64, err error) {
	err = guardTable(func() error {
		from := s.active.logs[at].purged
		return s.table.db.View(func(tx *bbolt.Tx) error {
			if f := s.frozen; f != nil && f.logs[at] != nil && metaNumber(tx, foldedKey) < f.through {
				l := f.logs[at]
				from = max(from, l.purged)
				for _, e := range freshPart(l.entries, max(from, 1)-1, before-1) {
					n += entryCost(at, len(e.value)-valueBytes)
				}
			}
			n += bytesBetween(tx, at, from, before)
			return nil
		})
	})
	return n, err
}
