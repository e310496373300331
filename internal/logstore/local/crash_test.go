package local

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/troupe-run/troupe/mailbox"
)

// ledger is what was appended to each log, in order, and how much of it was acknowledged.
type ledger struct {
	mu       sync.Mutex
	appended map[mailbox.Address][]string
	acked    map[mailbox.Address]int
	cut      map[mailbox.Address]int // acked at the last power cut
}

func newCrashLedger() *ledger {
	return &ledger{appended: map[mailbox.Address][]string{}, acked: map[mailbox.Address]int{}}
}

// write appends to some logs, each entry after the acknowledgement of the one before it, until the
// context ends.
func (l *ledger) write(ctx context.Context, s *Store, logs int) (wait func()) {
	var all sync.WaitGroup
	for i := range logs {
		at := mailbox.At(fmt.Sprintf("r%d", i%7), fmt.Sprintf("a%d", i))
		all.Go(func() {
			for ctx.Err() == nil {
				l.mu.Lock()
				n := len(l.appended[at])
				text := fmt.Sprintf("entry %d of %s%s", n, at, strings.Repeat(".", n%97*11))
				l.appended[at] = append(l.appended[at], text)
				l.mu.Unlock()
				_, err := mailbox.Put(ctx, s, at, []byte(text))
				l.mu.Lock()
				if err != nil {
					l.mu.Unlock()
					return
				}
				l.acked[at] = n + 1
				l.mu.Unlock()
			}
		})
	}
	return all.Wait
}

// check compares the logs with the ledger: all that was acknowledged is there, in order, and
// nothing that was not appended. Then the ledger goes on with what is there.
func (l *ledger) check(t *testing.T, s *Store) (entries int) {
	t.Helper()
	for at, want := range l.appended {
		var got []string
		err := s.Read(t.Context(), at, 0, 0, func(m mailbox.Message) error {
			got = append(got, string(m.Data))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) < l.acked[at] || len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("%s: %d entries, %d acknowledged, %d appended: %.300q", at, len(got), l.acked[at], len(want), got)
		}
		l.appended[at], l.acked[at] = slices.Clone(got), len(got)
		entries += len(got)
	}
	return entries
}

// flagAll is set by `make exhaustive`.
var flagAll = flag.Bool("local.all", false, "try all power cuts, killed processes and rotten bits, not a third of them")

// sampled returns how many of some random cases are tried.
func sampled(cases int) int {
	if *flagAll {
		return cases
	}
	return max(cases/3, 1)
}

// TestPowerCut cuts the power again and again while many logs grow, and segments are folded and
// reused: no acknowledged entry is lost.
func TestPowerCut(t *testing.T) { cutPowerOften(t, false) }

// TestPowerCutOfALazyStore loses entries at the end of logs, and none between others.
func TestPowerCutOfALazyStore(t *testing.T) { cutPowerOften(t, true) }

func cutPowerOften(t *testing.T, lazy bool) {
	t.Parallel()
	cuts := sampled(20)
	random := rand.New(rand.NewPCG(7, 7))
	disk, dir, l := newCrashDisk(), t.TempDir(), newCrashLedger()
	entries := 0
	for cut := range cuts {
		s, err := Open(t.Context(), Config{Dir: dir, disk: disk, segmentBytes: 64 << 10, Lazy: lazy})
		if err != nil {
			t.Fatal(err)
		}
		if now := l.check(t, s); now < entries && !lazy {
			t.Fatalf("cut %d: %d entries, %d before", cut, now, entries)
		} else {
			entries = now
		}
		ctx, cancel := context.WithCancel(t.Context())
		reached := make(chan struct{}, 1)
		target := s.lastVisible() + 1 + random.Uint64N(3000)
		stop, err := s.Tail(ctx, func(m mailbox.Message) {
			if m.Place == target {
				reached <- struct{}{}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		wait := l.write(ctx, s, 1+random.IntN(40))
		<-reached
		disk, dir = l.cutPower(t, s, disk, random)
		cancel()
		wait()
		stop()
		if l.acked = l.cut; lazy {
			clear(l.acked)
		}
		s.abandon(t)
	}
	if entries == 0 {
		t.Error("nothing was appended")
	}
}

// cutPower returns what is left of the write-ahead log and of the table after a loss of power, and notes
// what was acknowledged before it.
func (l *ledger) cutPower(t *testing.T, s *Store, disk *crashDisk, random *rand.Rand) (*crashDisk, string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = maps.Clone(l.acked)
	// No segment is released meanwhile. A table is as its last transaction left it.
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := t.TempDir()
	err := s.table.db.View(func(tx *bbolt.Tx) error { return tx.CopyFile(filepath.Join(dir, tableName), fileMode) })
	if err != nil {
		t.Fatal(err)
	}
	return disk.cutPower(random, dir), dir
}

// abandon ends a store without folding its write-ahead log, as a crash does.
func (s *Store) abandon(t *testing.T) {
	t.Helper()
	for _, op := range s.queue.close() {
		op.answer(0, mailbox.ErrClosed)
	}
	close(s.closing)
	s.mu.Lock()
	s.folded.Broadcast()
	s.mu.Unlock()
	s.running.Wait()
	s.health.close()
	if err := s.table.close(); err != nil {
		t.Fatal(err)
	}
}

// TestFailingDisk: appends wait while writes fail, the failure is reported at once, and they are
// stored, once and in order, when the disk works again.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	disk := newCrashDisk()
	told := make(chan mailbox.Stall, 8)
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{Dir: dir, disk: disk, Stalled: func(st mailbox.Stall) { told <- st }})
	if err != nil {
		t.Fatal(err)
	}
	put := func(text string, ctx context.Context) error {
		_, err := mailbox.Put(ctx, s, "run.a", []byte(text))
		return err
	}
	if err := put("0", t.Context()); err != nil {
		t.Fatal(err)
	}
	disk.setFailure(errDiskFull)
	waiting := make(chan error, 1)
	go func() { waiting <- put("1", t.Context()) }()
	if st := <-told; st.Since.IsZero() || st.Err == nil || !strings.Contains(st.Why, "no space left") || st.Subject != "run.a" {
		t.Errorf("it is reported as %+v", st)
	}
	canceled, cancel := context.WithCancel(t.Context())
	also := make(chan error, 1)
	go func() { also <- put("2", canceled) }()
	cancel()
	if err := <-also; err == nil {
		t.Error("an append whose context has ended is acknowledged")
	}
	disk.setFailure(nil)
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if st := <-told; !st.Since.IsZero() {
		t.Errorf("then %+v", st)
	}
	if err := put("3", t.Context()); err != nil {
		t.Fatal(err)
	}
	s.abandon(t)
	s, err = Open(t.Context(), Config{Dir: dir, disk: disk})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = s.Read(t.Context(), "run.a", 0, 0, func(m mailbox.Message) error { got = append(got, string(m.Data)); return nil })
	if err != nil || !slices.Equal(got, []string{"0", "1", "3"}) {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestCloseWhileTheDiskFails: Close ends appends that wait for a disk.
func TestCloseWhileTheDiskFails(t *testing.T) {
	disk := newCrashDisk()
	disk.setFailure(errDiskFull)
	told := make(chan mailbox.Stall, 8)
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), disk: disk, Stalled: func(st mailbox.Stall) { told <- st }})
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() { _, err := mailbox.Put(t.Context(), s, "run.a", []byte("x")); waiting <- err }()
	<-told
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waiting; err == nil {
		t.Error("it is acknowledged")
	}
}
