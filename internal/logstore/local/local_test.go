package local_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/logstore/local"
	"github.com/troupe-run/troupe/internal/test/boxtest"
	"github.com/troupe-run/troupe/mailbox"
)

func openStore(t testing.TB, cfg local.Config) *local.Store {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	s, err := local.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	for name, lazy := range map[string]bool{"synced": false, "lazy": true} {
		t.Run(name, func(t *testing.T) {
			boxtest.Run(t, func(t *testing.T) mailbox.Post { return openStore(t, local.Config{Lazy: lazy}) })
		})
	}
}

func putEntry(t testing.TB, s *local.Store, to mailbox.Address, data string) uint64 {
	t.Helper()
	place, err := mailbox.Put(t.Context(), s, to, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return place
}

func readTexts(t testing.TB, s *local.Store, at mailbox.Address) (texts []string) {
	t.Helper()
	err := s.Read(t.Context(), at, 0, 0, func(m mailbox.Message) error {
		texts = append(texts, string(m.Data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestReopenedStore: what was appended and purged before a Close is there after it, and places go
// on increasing.
func TestReopenedStore(t *testing.T) {
	dir := t.TempDir()
	var want []string
	last := uint64(0)
	for round := range 4 {
		s := openStore(t, local.Config{Dir: dir})
		if got := readTexts(t, s, "run.a"); !slices.Equal(got, want) {
			t.Fatalf("round %d: %q, want %q", round, got, want)
		}
		for i := range 3 {
			text := fmt.Sprintf("%d of round %d", i, round)
			place := putEntry(t, s, "run.a", text)
			if place <= last {
				t.Fatalf("place %d after %d", place, last)
			}
			last, want = place, append(want, text)
		}
		if round == 2 {
			if err := s.Purge(t.Context(), "run.a", last); err != nil {
				t.Fatal(err)
			}
			want = want[len(want)-1:]
		}
		putEntry(t, s, mailbox.At("gone", fmt.Sprint(round)), "x")
		if err := s.Purge(t.Context(), mailbox.At("gone", fmt.Sprint(round)), 0); err != nil {
			t.Fatal(err)
		}
		heads := map[mailbox.Address]uint64{}
		if err := s.Heads(t.Context(), func(h mailbox.Head) error { heads[h.To] = h.Entries; return nil }); err != nil {
			t.Fatal(err)
		}
		if len(heads) != 1 || heads["run.a"] != uint64(len(want)) {
			t.Errorf("round %d: the heads are %v", round, heads)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullStore: at the limit an append is refused, and after a purge it is stored. Entries count
// the same before and after they are folded.
func TestFullStore(t *testing.T) {
	dir := t.TempDir()
	cfg := local.Config{Dir: dir, BytesMax: 10_000}
	s := openStore(t, cfg)
	putEntry(t, s, "r.a", string(make([]byte, 6000)))
	if _, err := mailbox.Put(t.Context(), s, "r.a", make([]byte, 6000)); !errors.Is(err, mailbox.ErrFull) {
		t.Fatal(err)
	}
	before, most, err := s.Room(t.Context())
	if err != nil || most != cfg.BytesMax || before < 6000 {
		t.Errorf("%d of %d, %v", before, most, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, cfg)
	if used, _, err := s.Room(t.Context()); err != nil || used != before {
		t.Errorf("%d bytes, %d before: %v", used, before, err)
	}
	if err := s.Purge(t.Context(), "r.a", 0); err != nil {
		t.Fatal(err)
	}
	if used, _, err := s.Room(t.Context()); err != nil || used != 0 {
		t.Errorf("%d bytes: %v", used, err)
	}
	putEntry(t, s, "r.a", string(make([]byte, 6000)))
}

// TestFullStoreIsReported: appends that are refused for a while are a stall, and it ends by itself.
func TestFullStoreIsReported(t *testing.T) {
	told := make(chan mailbox.Stall, 8)
	s := openStore(t, local.Config{BytesMax: 1000, StallAfter: 50 * time.Millisecond, Stalled: func(st mailbox.Stall) { told <- st }})
	for {
		if _, err := mailbox.Put(t.Context(), s, "r.a", make([]byte, 2000)); !errors.Is(err, mailbox.ErrFull) {
			t.Fatal(err)
		}
		if len(told) > 0 {
			break
		}
	}
	if st := <-told; st.Since.IsZero() || st.Subject != "r.a" || st.Why == "" {
		t.Errorf("%+v", st)
	}
	if st := <-told; !st.Since.IsZero() {
		t.Errorf("then %+v", st)
	}
}

// TestAddresses: an address that the keys cannot hold is refused.
func TestAddressesAreChecked(t *testing.T) {
	s := openStore(t, local.Config{})
	for _, at := range []mailbox.Address{"", "a\x00b", mailbox.Address(make([]byte, local.AddressBytesMax+1))} {
		if _, err := mailbox.Put(t.Context(), s, at, []byte("x")); !errors.Is(err, local.ErrAddress) {
			t.Errorf("%q: %v", at, err)
		}
		if err := s.Purge(context.Background(), at, 0); !errors.Is(err, local.ErrAddress) {
			t.Errorf("purge %q: %v", at, err)
		}
	}
}
