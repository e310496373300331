package local

import (
	"context"
	"fmt"

	"github.com/troupe-run/troupe/mailbox"
)

// importBytesMax is how many bytes of an import wait for the write-ahead log at once.
const importBytesMax = 4 << 20

// importedLog is a log that an import appends to. The writer alone changes it while operations wait.
type importedLog struct {
	newest uint64 // place of the newest entry that the log must have
	broken bool   // an entry was refused, so no later one may be appended
}

// follows reports whether the next entry of an import follows the entry that it must follow. A new entry follows any.
func (l *importedLog) follows(log *freshLog) bool {
	return l == nil || !l.broken && log.last == l.newest
}

func (l *importedLog) breakOff() {
	if l != nil {
		l.broken = true
	}
}

// Import implements mailbox.Store.
func (s *Store) Import(ctx context.Context, newest map[mailbox.Address]uint64, entries []mailbox.Message) error {
	logs := map[mailbox.Address]*importedLog{}
	for len(entries) > 0 {
		n, bytes := 0, 0
		for n < len(entries) && n < batchEntriesMax && (n == 0 || bytes < importBytesMax) {
			bytes += len(entries[n].Data)
			n++
		}
		if err := s.importBatch(ctx, newest, logs, entries[:n]); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// importBatch appends entries and waits for all answers.
func (s *Store) importBatch(ctx context.Context, newest map[mailbox.Address]uint64, logs map[mailbox.Address]*importedLog, entries []mailbox.Message) (err error) {
	answers := make(chan error, len(entries))
	waiting := 0
	for _, m := range entries {
		if logs[m.To] == nil {
			logs[m.To] = &importedLog{newest: newest[m.To]}
		}
		op := operation{ctx: ctx, to: m.To, data: m.Data, at: m.At, imports: logs[m.To], done: func(_ uint64, err error) { answers <- err }}
		if err = s.enqueue(op); err != nil {
			err = fmt.Errorf("local: append to %s: %w", m.To, err)
			break
		}
		waiting++
	}
	for range waiting {
		if answer := <-answers; answer != nil && err == nil {
			err = answer
		}
	}
	return err
}
