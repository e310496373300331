package host

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of what is noted when a run begins. Much of it is about files of the
// directory, and what comes with one must not be able to fill the answer, or to
// hide the other notes.
const (
	NotesMax     = 64  // of a run
	NotesAbout   = 12  // one kind of thing
	NoteBytesMax = 800 // each
)

// few are the first notes about one kind of thing, and how many there are more.
func few(notes []string, most int, more string) []string {
	if len(notes) > most {
		notes = append(slices.Clone(notes[:most]), fmt.Sprintf("and %d more %s", len(notes)-most, more))
	}
	list := make([]string, len(notes))
	for i, n := range notes {
		if len(n) > NoteBytesMax {
			n = strings.ToValidUTF8(n[:NoteBytesMax*3/4], "") + " … " + strings.ToValidUTF8(n[len(n)-NoteBytesMax/4:], "")
		}
		list[i] = n
	}
	return list
}
