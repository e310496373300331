// Package agentmemory keeps what agents remember beyond a run: small notes in files of the state directory. Each
// agent that has memory owns one store: of the user, for all its runs, or of a project, for its runs in one
// directory. Agents reach a store by the tools of Tools; people list, read and delete the notes on the command line.
//
// The state directory holds the notes, and not the directory of the run: a repository must not supply notes that
// agents trust, and a commit must not publish them.
package agentmemory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// Limits of a store.
const (
	NotesMax            = 64        // of one store
	StoreBytesMax       = 128 << 10 // descriptions and contents of one store
	ContentBytesMax     = 8 << 10   // of one note
	DescriptionBytesMax = 160       // of one note
	IndexBytesMax       = 4 << 10   // of the list of notes in a prompt
)

// fileBytesMax bounds the file of a note: JSON needs two bytes for a quote or the end of a line.
const fileBytesMax = 2*(ContentBytesMax+DescriptionBytesMax) + 1<<10

// Errors of notes and stores.
var (
	ErrNote         = errors.New("not a valid note")
	ErrNoteNotFound = errors.New("there is no such note")
	ErrFull         = errors.New("the memory is full")
	ErrChanged      = errors.New("the note has changed")
	ErrStore        = errors.New("agentmemory: bad store")
)

// Note is one thing that an agent remembers.
type Note struct {
	Name        string    `json:"-"` // of its file
	Description string    `json:"description"`
	Content     string    `json:"content"`
	Run         string    `json:"run"` // that wrote it
	Written     time.Time `json:"written"`
	// Tainted: its author had read text from outside.
	Tainted bool `json:"tainted,omitempty"`
}

var noteNamePattern = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// nameBytesMax bounds the name of a note.
const nameBytesMax = 64

// CheckName refuses what is no name of a note. A name is a part of a path, so nothing but letters, digits and single
// hyphens is one.
func CheckName(name string) error {
	if !noteNamePattern.MatchString(name) || len(name) > nameBytesMax {
		return fmt.Errorf("%w: name is %.80q; write up to %d lower-case letters, digits and single hyphens, such as build-steps", ErrNote, name, nameBytesMax)
	}
	return nil
}

// check refuses a note that breaks a limit, or that holds characters which a reader cannot see.
func (n Note) check() error {
	if err := CheckName(n.Name); err != nil {
		return err
	}
	for _, part := range []struct {
		name, text string
		max        int
		hidden     func(rune) bool
	}{
		{"description", n.Description, DescriptionBytesMax, isHidden},
		{"content", n.Content, ContentBytesMax, func(r rune) bool { return r != '\n' && r != '\t' && isHidden(r) }},
	} {
		switch {
		case strings.TrimSpace(part.text) == "":
			return fmt.Errorf("%w: %s is empty; say what is worth knowing", ErrNote, part.name)
		case len(part.text) > part.max:
			return fmt.Errorf("%w: %s has %d bytes, at most %d are kept; shorten it, or split it into several notes", ErrNote, part.name, len(part.text), part.max)
		case !utf8.ValidString(part.text):
			return fmt.Errorf("%w: %s is not UTF-8", ErrNote, part.name)
		case strings.ContainsFunc(part.text, part.hidden):
			return fmt.Errorf("%w: %s has invisible or control characters, or a description of several lines; write plain text", ErrNote, part.name)
		}
	}
	return nil
}

// isHidden reports whether a person may not see a character that a model reads: control and format characters (those
// that change the writing direction, tags), separators of lines, and those for private use. The joiners that emoji and
// scripts need are none.
func isHidden(r rune) bool {
	switch r {
	case '\u200c', '\u200d', '\ufe0f': // joiners, and the selector of emoji
		return false
	case '\u2800': // a pattern of no dots
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// size is what a note takes of StoreBytesMax.
func (n Note) size() int { return len(n.Description) + len(n.Content) }

// versionBytes is how many bytes of a hash identify a version.
const versionBytes = 6

// Version identifies the text of a note, for writes that must not replace a newer one.
func (n Note) Version() string {
	sum := sha256.Sum256([]byte(n.Description + "\x00" + n.Content))
	return hex.EncodeToString(sum[:versionBytes])
}

// encode returns the file of a note.
func (n Note) encode() ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(n); err != nil {
		return nil, fmt.Errorf("agentmemory: %w", err)
	}
	return []byte(b.String()), nil
}

// decodeNote reads the file of a note. It checks it like a new one: people may have edited the file.
func decodeNote(name string, data []byte) (Note, error) {
	if !utf8.Valid(data) {
		return Note{}, fmt.Errorf("%w: its file is not UTF-8", ErrNote)
	}
	var n Note
	if err := json.Unmarshal(data, &n); err != nil {
		return Note{}, fmt.Errorf("%w: its file is not the JSON of a note: %w", ErrNote, err)
	}
	n.Name = name
	if len(n.Run) > runBytesMax || strings.ContainsFunc(n.Run, isHidden) {
		n.Run = "" // no id of a run
	}
	return n, n.check()
}

// runBytesMax bounds the id of a run in a note.
const runBytesMax = 128
