package jetstream_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/test/boxtest"
	"github.com/troupe-run/troupe/mailbox"
)

// openBlobs opens the blobs of a server of their own.
func openBlobs(t testing.TB, most int64) (*jetstream.Blobs, *bus.Buckets) {
	t.Helper()
	_, nc := serveTest(t)
	return blobsOver(t, nc, most)
}

func blobsOver(t testing.TB, nc *nats.Conn, most int64) (*jetstream.Blobs, *bus.Buckets) {
	t.Helper()
	buckets, err := bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{BlobBytesMax: most})
	if err != nil {
		t.Fatal(err)
	}
	b, err := jetstream.OpenBlobs(t.Context(), nc, buckets.Blobs, names.Names{})
	if err != nil {
		t.Fatal(err)
	}
	return b, buckets
}

//behaviour:shows C7
func TestBlobs(t *testing.T) {
	t.Parallel() // it waits more than it works
	boxtest.Blobs(t, func(t *testing.T) mailbox.Blobs {
		b, _ := openBlobs(t, 0)
		return b
	})
}

// A store that is full takes nothing of a blob, and says so; with room again
// the same blob can be stored.
func TestFullStoreKeepsNoPartOfABlob(t *testing.T) {
	b, buckets := openBlobs(t, 3<<20)
	if _, err := b.Put(t.Context(), "old", bytes.Repeat([]byte("a"), 2<<20)); err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("b"), 2<<20)
	_, err := b.Put(t.Context(), "run", data)
	if !errors.Is(err, mailbox.ErrFull) {
		t.Fatal(err)
	}
	if _, _, err := b.Get(t.Context(), "run", mailbox.BlobRef(data), 0, 1); !errors.Is(err, mailbox.ErrNoBlob) {
		t.Errorf("half a blob: %v", err)
	}
	if err := b.Drop(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	status, err := buckets.Blobs.Status(t.Context())
	if err != nil || status.Size() != 0 {
		t.Errorf("%d bytes are left behind: %v", status.Size(), err)
	}
	ref, err := b.Put(t.Context(), "run", data)
	if err != nil {
		t.Fatal(err)
	}
	if part, size, err := b.Get(t.Context(), "run", ref, 0, 3); err != nil || size != int64(len(data)) || string(part) != "bbb" {
		t.Errorf("%q of %d: %v", part, size, err)
	}
}

// Not even the first blob of a run costs more for what others have kept: a
// store that is scanned for it takes seconds while the shelf is locked.
func TestAPutDoesNotReadTheBlobsOfOtherRuns(t *testing.T) {
	const others = 200
	_, nc := serveTest(t)
	b, _ := blobsOver(t, nc, 0)
	received := func(run string) (n uint64) {
		before := nc.Stats().InMsgs
		if _, err := b.Put(t.Context(), run, []byte("mine")); err != nil {
			t.Fatal(err)
		}
		return nc.Stats().InMsgs - before
	}
	alone := received("first")
	for i := range others {
		if _, err := b.Put(t.Context(), "other", []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if beside := received("second"); beside > alone+2 {
		t.Errorf("%d messages came back for a put beside %d other blobs, %d without", beside, others, alone)
	}
}

// A process that dies between the chunks of a blob and its name leaves chunks
// that nobody names: they go with the run, and count for nothing until then.
func TestChunksWithoutANameGoWithTheRun(t *testing.T) {
	_, nc := serveTest(t)
	b, buckets := blobsOver(t, nc, 0)
	data := []byte("all of it")
	ref := mailbox.BlobRef(data)
	if _, err := nc.Request(names.Names{}.BlobChunks("run."+ref+".died"), data[:3], time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Get(t.Context(), "run", ref, 0, 10); !errors.Is(err, mailbox.ErrNoBlob) {
		t.Errorf("half a blob: %v", err)
	}
	if _, err := b.Put(t.Context(), "run", data); err != nil {
		t.Fatal(err)
	}
	if part, _, err := b.Get(t.Context(), "run", ref, 0, 10); err != nil || string(part) != string(data) {
		t.Errorf("%q %v", part, err)
	}
	if err := b.Drop(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	status, err := buckets.Blobs.Status(t.Context())
	if err != nil || status.Size() != 0 {
		t.Errorf("%d bytes are left behind: %v", status.Size(), err)
	}
}

// The store is one of the client library's form: its own tools read it.
func TestLibraryReadsOurBlobs(t *testing.T) {
	b, buckets := openBlobs(t, 0)
	for _, data := range [][]byte{nil, []byte("small"), bytes.Repeat([]byte("large"), 300_000)} {
		ref, err := b.Put(t.Context(), "run", data)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := buckets.Blobs.GetBytes(t.Context(), "run/"+ref); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d of %d bytes: %v", len(got), len(data), err)
		}
	}
}

// BenchmarkBlobs prints what a put of 1 MiB takes, alone and beside seven others:
// go test ./internal/logstore/jetstream -run '^$' -bench Blobs
func BenchmarkBlobs(b *testing.B) {
	const at = 8
	for _, parallel := range []int{1, at} {
		b.Run(fmt.Sprint(parallel), func(b *testing.B) {
			store, _ := blobsOver(b, benchServer(b, true), 0)
			data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
			b.SetBytes(int64(parallel * len(data)))
			n := 0
			for b.Loop() {
				var all sync.WaitGroup
				for range parallel {
					n++
					copied := bytes.Clone(data)
					copy(copied, fmt.Sprint(n))
					all.Go(func() {
						if _, err := store.Put(b.Context(), fmt.Sprint("run", n/128), copied); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
			}
		})
	}
}

// Blobs outlive what put them.
func TestBlobsAreThereAfterARestart(t *testing.T) {
	dir := t.TempDir()
	open := func() (*embedded.Server, *jetstream.Blobs) {
		e, err := embedded.Start(embedded.Config{StateDir: dir, DontListen: true})
		if err != nil {
			t.Fatal(err)
		}
		nc := dialServer(t, e)
		buckets, err := bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := jetstream.OpenBlobs(t.Context(), nc, buckets.Blobs, names.Names{})
		if err != nil {
			t.Fatal(err)
		}
		return e, b
	}
	e, b := open()
	ref, err := b.Put(t.Context(), "run", []byte("kept"))
	if err == nil {
		err = e.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	e, b = open()
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if part, _, err := b.Get(t.Context(), "run", ref, 0, 10); err != nil || string(part) != "kept" {
		t.Errorf("%q %v", part, err)
	}
}

// TestRoomOfBlobs: the blobs of one run, and those of all runs with the limit of the store.
func TestRoomOfBlobs(t *testing.T) {
	b, _ := openBlobs(t, 8<<20)
	for _, run := range []string{"a", "b"} {
		if _, err := b.Put(t.Context(), run, bytes.Repeat([]byte(run), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if used, _, err := b.Room(t.Context(), "a"); used != 1<<20 || err != nil {
		t.Errorf("a has %d bytes, %v", used, err)
	}
	if used, most, err := b.Room(t.Context(), ""); used < 2<<20 || most != 8<<20 || err != nil {
		t.Errorf("all have %d bytes of %d, %v", used, most, err)
	}
	if err := b.Drop(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if used, _, err := b.Room(t.Context(), "a"); used != 0 || err != nil {
		t.Errorf("a still has %d bytes, %v", used, err)
	}
}
