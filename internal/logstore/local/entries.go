package local

import (
	"context"
	"fmt"
	"maps"

	"github.com/troupe-run/troupe/mailbox"
)

// Entries implements mailbox.Store. Of most logs of a long run the table has all entries: their rows are read in one
// transaction.
func (s *Store) Entries(_ context.Context, run string) (map[mailbox.Address]uint64, error) {
	counts, fresh, purged := map[mailbox.Address]uint64{}, map[mailbox.Address]uint64{}, map[mailbox.Address]uint64{}
	err := guardTable(func() error {
		tx, err := s.listFresh(run, fresh, purged)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // it only ends a transaction that reads
		eachRow(tx, run, func(at mailbox.Address) {
			if r, ok := readRow(tx, at); ok {
				counts[at] = r.entries
			}
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("local: entries of %s: %w", run, err)
	}
	for _, unfolded := range []map[mailbox.Address]uint64{fresh, purged} {
		for at := range unfolded {
			h, err := s.head(at)
			if err != nil {
				return nil, fmt.Errorf("local: entries of %s: %w", run, err)
			}
			counts[at] = h.Entries
		}
	}
	maps.DeleteFunc(counts, func(_ mailbox.Address, n uint64) bool { return n == 0 })
	return counts, nil
}
