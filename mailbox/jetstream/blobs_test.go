package jetstream_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/boxtest"
	"github.com/troupe-run/troupe/mailbox/jetstream"
)

// blobs opens the blobs of a server of their own.
func blobs(t *testing.T, most int64) (*jetstream.Blobs, *bus.Buckets) {
	t.Helper()
	_, nc := serve(t)
	buckets, err := bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{BlobBytesMax: most})
	if err != nil {
		t.Fatal(err)
	}
	b, err := jetstream.OpenBlobs(t.Context(), nc, buckets.Blobs, bus.Names{})
	if err != nil {
		t.Fatal(err)
	}
	return b, buckets
}

func TestBlobs(t *testing.T) {
	boxtest.Blobs(t, func(t *testing.T) mailbox.Blobs {
		b, _ := blobs(t, 0)
		return b
	})
}

// A store that is full takes nothing of a blob, and says so; with room again
// the same blob can be stored.
func TestBlobsOfAFullStoreLeaveNothingBehind(t *testing.T) {
	b, buckets := blobs(t, 3<<20)
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

// Blobs outlive what put them.
func TestBlobsAreThereAfterARestart(t *testing.T) {
	dir := t.TempDir()
	open := func() (*bus.Embedded, *jetstream.Blobs) {
		e, err := bus.StartEmbedded(bus.EmbeddedConfig{StateDir: dir, DontListen: true})
		if err != nil {
			t.Fatal(err)
		}
		nc := dial(t, e)
		buckets, err := bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := jetstream.OpenBlobs(t.Context(), nc, buckets.Blobs, bus.Names{})
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
