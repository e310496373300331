package cli

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/client"
)

// place is the position of an event in its log: the i-th event of entry n.
type place struct {
	n uint64
	i int
}

// places are the newest events seen, by log: a node may send an event again, and
// after a change of the node the client requests a whole entry once more.
type places map[string]place

// fresh records an event and reports whether it is new. Deltas have no
// place; a node sends them once.
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

// cursor is the position to continue from: the newest entries may not have arrived whole.
func (p places) cursor() client.Cursor {
	c := client.Cursor{}
	for at, last := range p {
		c[at] = last.n - 1
	}
	return c
}

// whole returns the cursor after every event that was seen.
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
