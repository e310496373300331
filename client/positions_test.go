package client

import (
	"errors"
	"maps"
	"strconv"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
)

// A text of positions is small also for a tree of many agents, and reads back exactly.
func TestPositionsAreReadBackFromTheirText(t *testing.T) {
	p := Positions{}
	for a := range 128 {
		for entry := range 3 {
			id := "01k9z3." + "root-2-" + strconv.Itoa(a) + "#" + strconv.Itoa(900+entry) + ".2"
			if !p.Advance(Event{Published: event.Published{ID: id, Seq: uint64(900 + entry)}}) {
				t.Fatal(id)
			}
		}
	}
	text := p.Text("01k9z3")
	if len(text) > 1500 {
		t.Errorf("%d bytes for 128 agents", len(text))
	}
	back, err := ParsePositions("01k9z3", text)
	if err != nil || !maps.Equal(back, p) {
		t.Errorf("%v %v", err, back)
	}
	if back.Advance(Event{Published: event.Published{ID: "01k9z3.root-2-7#902.2", Seq: 902}}) || !back.Advance(Event{Published: event.Published{ID: "01k9z3.root-2-7#902.3", Seq: 902}}) {
		t.Error("an event within an entry is not told from the one before it")
	}
	if back.Cursor()["01k9z3.root-2-7"] != 901 {
		t.Errorf("%v", back.Cursor())
	}
	for _, bad := range []string{"!", "AA", text[:len(text)-2], "e30"} {
		if _, err := ParsePositions("01k9z3", bad); !errors.Is(err, ErrCursor) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := ParsePositions("another", text); !errors.Is(err, ErrCursor) {
		t.Errorf("a cursor of another run: %v", err)
	}
}

// Any text is either refused or means the same after it was written again.
func FuzzParsePositions(f *testing.F) {
	f.Add("")
	f.Add(Positions{"r.root": {7, 1}, "r.root-1-0": {2, 0}, "r.super": {3, 4}}.Text("r"))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePositions("r", text)
		if err != nil {
			return
		}
		if again, err := ParsePositions("r", p.Text("r")); err != nil || !maps.Equal(again, p) {
			t.Errorf("%q: %v and %v, %v", text, p, again, err)
		}
		p.Cursor()
	})
}
