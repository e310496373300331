package toolset

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds on the notes at the start of a run. Many of them are about files of the directory,
// and such files must not be able to fill the answer or to hide the other notes.
const (
	NotesMax      = 64  // of a run
	NotesPerTopic = 12  // one kind of thing
	NoteBytesMax  = 800 // each
)

// LimitNotes returns the first notes about one kind of thing, and the number of further ones.
func LimitNotes(notes []string, most int, more string) []string {
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
