package client_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"
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

// A cursor that would inflate to more than a cursor may have is refused, and so is one whose names would: each of them is
// the one before it and two bytes.
func TestAttackInflatedCursor(t *testing.T) {
	distinct, nested, short := begunCursor(), begunCursor(), begunCursor()
	for i := range 200_000 {
		distinct = appendPosition(distinct, 0, fmt.Sprintf("root-1-%d", i))
	}
	for i := range 20_001 {
		short = appendPosition(short, 0, fmt.Sprintf("%d", i))
	}
	nested = appendPosition(nested, 0, strings.Repeat("a", 900_000))
	for i := range 10_000 {
		nested = appendPosition(nested, 900_000, string([]byte{byte(i >> 8), byte(i)}))
	}
	whole := appendPosition(begunCursor(), 0, "root")
	if _, err := client.ParsePositions("run", deflated(t, whole)); err != nil {
		t.Errorf("a small one: %v", err)
	}
	for name, bad := range map[string]string{"long": deflated(t, distinct), "many": deflated(t, short), "names": deflated(t, nested), "empty": "Ag", "broken": base64.RawURLEncoding.EncodeToString([]byte{2, 0xff, 0xff})} {
		if got, err := client.ParsePositions("run", bad); !errors.Is(err, client.ErrCursor) {
			t.Errorf("%s of %d bytes: %d positions, %v", name, len(bad), len(got), err)
		}
	}
}

func begunCursor() []byte { return append([]byte{1, 3}, "run"...) }

// appendPosition appends a position whose name begins with some bytes of the one before it.
func appendPosition(raw []byte, shared uint64, rest string) []byte {
	raw = binary.AppendUvarint(raw, shared)
	raw = append(binary.AppendUvarint(raw, uint64(len(rest))), rest...)
	return append(raw, 1, 1)
}

func deflated(t *testing.T, raw []byte) string {
	t.Helper()
	var out bytes.Buffer
	out.WriteByte(2)
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Write(raw); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(out.Bytes())
}
