package memory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/troupe-run/troupe/internal/test/blobs"

	"github.com/troupe-run/troupe/internal/test/boxtest"
	"github.com/troupe-run/troupe/internal/test/leaks"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestPost(t *testing.T) {
	boxtest.Run(t, func(*testing.T) mailbox.Post { return memory.New(memory.Config{}) })
}

func TestFullStoreRefusesAppends(t *testing.T) {
	p := memory.New(memory.Config{BytesMax: 100, Now: func() int64 { return 7 }})
	var last error
	done := func(_ uint64, err error) { last = err }
	p.Append(t.Context(), "r.a", make([]byte, 60), done)
	if last != nil {
		t.Fatal(last)
	}
	p.Append(t.Context(), "r.a", make([]byte, 60), done)
	if !errors.Is(last, mailbox.ErrFull) {
		t.Fatal(last)
	}
	if err := p.Purge(t.Context(), "r.a", 0); err != nil {
		t.Fatal(err)
	}
	p.Append(t.Context(), "r.a", make([]byte, 60), done)
	if last != nil {
		t.Fatal(last)
	}
	if used, most, err := p.Room(t.Context()); used != 60 || most != 100 || err != nil {
		t.Errorf("%d of %d, %v", used, most, err)
	}
	err := p.Read(t.Context(), "r.a", 0, 0, func(m mailbox.Message) error {
		if m.At != 7 {
			t.Errorf("stamped %d", m.At)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func BenchmarkAppend(b *testing.B) {
	p := memory.New(memory.Config{})
	data := make([]byte, 300)
	done := func(uint64, error) {}
	b.ReportAllocs()
	for b.Loop() {
		p.Append(context.Background(), "run.agent", data, done)
	}
}

// BenchmarkAppendTailed includes the delivery to one tail.
func BenchmarkAppendTailed(b *testing.B) {
	p := memory.New(memory.Config{})
	got := make(chan struct{}, 1024)
	stop, err := p.Tail(b.Context(), func(mailbox.Message) { got <- struct{}{} })
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 300)
	done := func(uint64, error) {}
	for b.Loop() {
		p.Append(b.Context(), "run.agent", data, done)
		<-got
	}
	stop()
}

func TestBlobs(t *testing.T) {
	boxtest.Blobs(t, func(*testing.T) mailbox.Blobs { return blobs.New() })
}
