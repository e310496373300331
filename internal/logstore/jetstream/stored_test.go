package jetstream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/mailbox"
)

// TestStoredNamesTheFullestStream: all streams count, and a log is in the fullest one if its removal is what Room notices.
func TestStoredNamesTheFullestStream(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, quickConfig())
	before, _, err := p.Stored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const logs = 8
	for i := range logs {
		putEntry(t, p, mailbox.At("small", fmt.Sprint(i)), strings.Repeat("x", 1000))
	}
	putEntry(t, p, "large.super", strings.Repeat("x", 100_000))
	sum, inFullest, err := p.Stored(t.Context())
	if err != nil || sum < before+logs*1000+100_000 {
		t.Errorf("%d bytes after %d, %v", sum, before, err)
	}
	if !inFullest("large.super") || inFullest("large.super@elsewhere") {
		t.Error("the large log is not in the fullest stream, or one of a pool that does not exist is")
	}
	for i := range logs {
		at := mailbox.At("small", fmt.Sprint(i))
		used, _, err := p.Room(t.Context())
		if err != nil || p.Purge(t.Context(), at, 0) != nil {
			t.Fatal(err)
		}
		if after, _, err := p.Room(t.Context()); err != nil || inFullest(at) != (after < used) {
			t.Errorf("%s is in the fullest stream: %t; the room went from %d to %d, %v", at, inFullest(at), used, after, err)
		}
	}
}
