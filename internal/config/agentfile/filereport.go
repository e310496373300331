package agentfile

import "fmt"

// fileReport is what there is to say about one file: problems, which are errors, and notes. Both are bounded, since
// anyone may have written the file.
type fileReport struct {
	path     string
	notes    []Note
	problems []error
}

// hasRoomForNotes reports whether a further note is kept: looking for suggestions that are not shown would cost
// seconds for a file of many unknown names.
func (r *fileReport) hasRoomForNotes() bool { return len(r.notes) < problemsMax }

func (r *fileReport) addNote(line int, format string, args ...any) {
	if r.hasRoomForNotes() {
		r.notes = append(r.notes, Note{Path: r.path, Line: line, Text: fmt.Sprintf(format, args...)})
	}
}

func (r *fileReport) addProblem(line int, format string, args ...any) {
	if len(r.problems) >= problemsMax {
		return
	}
	r.problems = append(r.problems, &Problem{r.path, max(0, line), fmt.Errorf("%w: %s", ErrField, fmt.Sprintf(format, args...))})
}
