package session

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
)

// position is the position of an event in its log: the i-th event of entry n.
type position struct {
	n uint64
	i int
}

// Positions are the newest events seen, by log: a node may send an event again, and
// after a change of the node the client requests a whole entry once more.
type Positions map[string]position

// Advance records an event and reports whether it is new. Deltas have no
// place; a node sends them once.
func (p Positions) Advance(e client.Event) bool {
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
	p[at] = position{e.Seq, i}
	return true
}

// Cursor is the position to continue from: the newest entries may not have arrived whole.
func (p Positions) Cursor() client.Cursor {
	c := client.Cursor{}
	for at, last := range p {
		c[at] = last.n - 1
	}
	return c
}

// CursorAfter returns the cursor after every event that was seen.
func (p Positions) CursorAfter() client.Cursor {
	c := client.Cursor{}
	for at, last := range p {
		c[at] = last.n
	}
	return c
}

var errCursor = errors.New("not a cursor")

// EncodeCursor makes the opaque form that people pass on.
func EncodeCursor(c client.Cursor) (string, error) {
	raw, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(raw), err
}

// DecodeCursor reads what EncodeCursor has made; "" is the beginning.
func DecodeCursor(text string) (client.Cursor, error) {
	c := client.Cursor{}
	if text == "" {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return nil, exit.UsageError("use the cursor that troupe events printed at its end", "--from: %q is %w", text, errCursor)
	}
	return c, nil
}
