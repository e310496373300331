package boxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/mailbox"
)

// Blobs runs the suite of mailbox.Blobs; open makes an empty store, which ends
// with t.
func Blobs(t *testing.T, open func(t *testing.T) mailbox.Blobs) {
	for name, test := range map[string]func(*testing.T, mailbox.Blobs){
		"what was put can be read in parts":    blobParts,
		"the same bytes are stored once":       blobOnce,
		"a run reads only its own":             blobOfRun,
		"a reference that nobody made":         blobRefs,
		"too large":                            blobTooLarge,
		"the limit of a run":                   blobRoom,
		"dropped with the run, and only there": blobDrop,
		"many at once":                         blobsAtOnce,
		"canceled":                             blobCanceled,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func putBlob(t *testing.T, b mailbox.Blobs, run string, data []byte) string {
	t.Helper()
	ref, err := b.Put(context60(t), run, data)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func getBlob(t *testing.T, b mailbox.Blobs, run, ref string, offset, n int64) (part []byte, size int64) {
	t.Helper()
	part, size, err := b.Get(context60(t), run, ref, offset, n)
	if err != nil {
		t.Fatal(err)
	}
	return part, size
}

// bytePattern makes n bytes whose parts all differ.
func bytePattern(n int) []byte {
	var out bytes.Buffer
	for i := 0; out.Len() < n; i++ {
		fmt.Fprintf(&out, "%d\n", i)
	}
	return out.Bytes()[:n]
}

func blobParts(t *testing.T, b mailbox.Blobs) {
	for _, size := range []int{0, 1, 100_000, 2<<20 + 7} {
		data := bytePattern(size)
		ref := putBlob(t, b, "run", data)
		if ref != mailbox.BlobRef(data) || mailbox.CheckBlobRef(ref) != nil {
			t.Errorf("the reference of %d bytes is %q", size, ref)
		}
		all := int64(size)
		for _, bound := range [][2]int64{{0, all}, {0, 10}, {all / 2, 1000}, {all, 5}, {all + 5, 5}, {-3, 4}, {5, -1}, {1, 1 << 60}} {
			want := mailbox.BlobPart(data, bound[0], bound[1])
			if got, n := getBlob(t, b, "run", ref, bound[0], bound[1]); n != all || !bytes.Equal(got, want) {
				t.Errorf("%d bytes from %d of %d: %d bytes of %d", bound[1], bound[0], size, len(got), n)
			}
		}
	}
}

func blobOnce(t *testing.T, b mailbox.Blobs) {
	data := bytePattern(mailbox.BlobBytesMax)
	first := putBlob(t, b, "run", data)
	for range 2 * mailbox.RunBlobBytesMax / mailbox.BlobBytesMax {
		if again := putBlob(t, b, "run", data); again != first {
			t.Fatalf("%s, then %s", first, again)
		}
	}
}

func blobOfRun(t *testing.T, b mailbox.Blobs) {
	ref := putBlob(t, b, "run", []byte("its own"))
	if _, _, err := b.Get(context60(t), "other", ref, 0, 10); !errors.Is(err, mailbox.ErrNoBlob) {
		t.Errorf("another run: %v", err)
	}
	putBlob(t, b, "other", []byte("its own"))
	if part, _ := getBlob(t, b, "other", ref, 4, 3); string(part) != "own" {
		t.Errorf("%q", part)
	}
}

func blobRefs(t *testing.T, b mailbox.Blobs) {
	ref := putBlob(t, b, "run", []byte("x"))
	for _, bad := range []string{"", "x", strings.ToUpper(ref), ref + "0", ref[1:], "../" + ref, "run/" + ref, strings.Repeat("z", len(ref)), ref[:60] + ".*>\x00"} {
		if _, _, err := b.Get(context60(t), "run", bad, 0, 10); !errors.Is(err, mailbox.ErrBlobRef) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, _, err := b.Get(context60(t), "run", mailbox.BlobRef([]byte("never put")), 0, 10); !errors.Is(err, mailbox.ErrNoBlob) {
		t.Errorf("never put: %v", err)
	}
}

func blobTooLarge(t *testing.T, b mailbox.Blobs) {
	if _, err := b.Put(context60(t), "run", make([]byte, mailbox.BlobBytesMax+1)); !errors.Is(err, mailbox.ErrTooLarge) {
		t.Error(err)
	}
}

func blobRoom(t *testing.T, b mailbox.Blobs) {
	data := bytePattern(mailbox.BlobBytesMax)
	for i := range mailbox.RunBlobBytesMax / mailbox.BlobBytesMax {
		data[0] = byte(i)
		putBlob(t, b, "run", data)
	}
	if _, err := b.Put(context60(t), "run", []byte("one more")); !errors.Is(err, mailbox.ErrBlobRoom) {
		t.Errorf("over the limit: %v", err)
	}
	putBlob(t, b, "run", data) // the run has it already
	putBlob(t, b, "other", []byte("not the other's limit"))
	if err := b.Drop(context60(t), "run"); err != nil {
		t.Fatal(err)
	}
	putBlob(t, b, "run", []byte("one more"))
}

func blobDrop(t *testing.T, b mailbox.Blobs) {
	refs := []string{putBlob(t, b, "run", []byte("1")), putBlob(t, b, "run", []byte("2"))}
	kept := putBlob(t, b, "run2", []byte("1"))
	for range 2 {
		if err := b.Drop(context60(t), "run"); err != nil {
			t.Fatal(err)
		}
	}
	for _, ref := range refs {
		if _, _, err := b.Get(context60(t), "run", ref, 0, 10); !errors.Is(err, mailbox.ErrNoBlob) {
			t.Errorf("dropped: %v", err)
		}
	}
	getBlob(t, b, "run2", kept, 0, 10)
	putBlob(t, b, "run", []byte("1"))
	getBlob(t, b, "run", refs[0], 0, 10)
}

func blobsAtOnce(t *testing.T, b mailbox.Blobs) {
	const writers = 8
	data := bytePattern(700_000)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			run := fmt.Sprint("run", i%2)
			ref, err := b.Put(context60(t), run, data)
			if err != nil {
				t.Error(err)
				return
			}
			if part, size, err := b.Get(context60(t), run, ref, 0, 1<<30); err != nil || size != int64(len(data)) || !bytes.Equal(part, data) {
				t.Errorf("%d bytes of %d: %v", len(part), size, err)
			}
		})
	}
	all.Wait()
}

func blobCanceled(t *testing.T, b mailbox.Blobs) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ref, err := b.Put(ctx, "run", []byte("too late")); err == nil {
		t.Errorf("stored as %s", ref)
	}
}
