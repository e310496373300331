package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/client"
)

// place is an event's place in its log: the i-th of entry n.
type place struct {
	n uint64
	i int
}

// places are the newest events seen, by log: an event may be told again, and
// after a change of the node all of an entry is asked for once more.
type places map[string]place

// fresh takes note of an event and reports whether it is new. Deltas have no
// place; they are told once.
func (p places) fresh(e client.Event) bool {
	if e.Seq == 0 {
		return true
	}
	at, rest, _ := strings.Cut(e.ID, "#")
	_, index, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(index)
	old, known := p[at]
	if err != nil || known && (e.Seq < old.n || e.Seq == old.n && i <= old.i) {
		return false
	}
	p[at] = place{e.Seq, i}
	return true
}

// cursor is where to ask on: the newest entries may not have been told whole.
func (p places) cursor() client.Cursor {
	c := client.Cursor{}
	for at, last := range p {
		c[at] = last.n - 1
	}
	return c
}

// whole is the cursor after everything that was seen.
func (p places) whole() client.Cursor {
	c := client.Cursor{}
	for at, last := range p {
		c[at] = last.n
	}
	return c
}

var errCursor = errors.New("not a cursor")

// encodeCursor makes the opaque form that people pass on.
func encodeCursor(c client.Cursor) (string, error) {
	raw, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(raw), err
}

func decodeCursor(text string) (client.Cursor, error) {
	c := client.Cursor{}
	if text == "" {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return nil, usage("use the cursor that troupe events printed at its end", "--from: %q is %w", text, errCursor)
	}
	return c, nil
}
