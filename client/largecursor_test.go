package client_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// The cursor of a run of 10,000 agents fits the headers of a request, and continues where it was made.
func TestCursorOfManyAgentsIsShort(t *testing.T) {
	const run = "01k9z3abcdefghjkmnpqrstvwx"
	p := client.Positions{}
	for i := range 10_000 {
		n := uint64(1 + i*7919%97) // as agents that took different numbers of turns
		p.Advance(client.Event{Published: event.Published{ID: fmt.Sprintf("%s.root-1-%d-1-%d#%d.%d", run, i/100, i%100, n, i%3), Seq: n}})
	}
	text := p.Text(run)
	if len(text) > 48<<10 {
		t.Errorf("the cursor has %d bytes", len(text))
	}
	if got, err := client.ParsePositions(run, text); err != nil || !maps.Equal(got, p) {
		t.Errorf("%d of %d positions, %v", len(got), len(p), err)
	}
}

// A cursor that would inflate to more than a cursor may have is refused.
func TestAttackInflatedCursor(t *testing.T) {
	var raw bytes.Buffer
	raw.WriteByte(2)
	w, err := flate.NewWriter(&raw, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Write(make([]byte, 8<<20)); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{raw.Bytes(), {2}, {2, 0xff, 0xff}} {
		if _, err := client.ParsePositions("run", base64.RawURLEncoding.EncodeToString(bad)); !errors.Is(err, client.ErrCursor) {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
}
