package investigator

import (
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
)

// FileInTheWay is in the answer of an investigation that could not write its report because somebody else's file has
// that name.
const FileInTheWay = "exists and was not made by troupe"

// remedyOfFile is what a person can do about it.
const remedyOfFile = "; delete or rename it, or name another file in the prompt"

// describeWrites describes the outcome of writing the report files. lost says why a file could not be written although
// it was tried; of two files, the report for people.
func (inv *investigation) describeWrites(t *conversation) (text, lost string) {
	var written, all []string
	for _, name := range []string{inv.reportName, reportJSON} {
		ex, tried := t.findWrite(name)
		why, fails := "", true
		switch {
		case tried && ex.answered && !ex.failed:
			written = append(written, name)
			continue
		case tried && strings.Contains(ex.text, FileInTheWay):
			why = "it " + FileInTheWay + remedyOfFile
		case tried:
			why, fails = clip.Marked(clip.FirstLine(ex.text), errorShown, "…"), ex.answered
		case t.closing:
			why, fails = "the run was closing", false
		case !t.offered[toolWrite]:
			why = toolWrite + " was not offered"
		default:
			why = "it does not fit in the output allowed"
		}
		why = name + " was not written: " + why
		all = append(all, why)
		if fails && lost == "" {
			lost = why
		}
	}
	if len(written) > 0 {
		all = append([]string{"Report: " + strings.Join(written, ", ")}, all...)
	}
	return strings.Join(all, "; ") + ".", lost
}

// describeIncomplete names the parts of the investigation that are missing because a child did not finish; "" if
// there are none.
func (inv *investigation) describeIncomplete() string {
	if len(inv.incomplete) == 0 {
		return ""
	}
	return "Incomplete: " + strings.Join(inv.incomplete, "; ") + "."
}
