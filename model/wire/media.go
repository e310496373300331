package wire

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// Base64 is a medium as APIs take it.
func Base64(m model.Media) string { return base64.StdEncoding.EncodeToString(m.Data) }

// DataURL is a medium as APIs take it that want a URL.
func DataURL(m model.Media) string { return "data:" + m.Type + ";base64," + Base64(m) }

// FileName is the name of a medium, which some APIs demand.
func FileName(m model.Media) string {
	if Blank(m.Name) {
		return "attachment"
	}
	return m.Name
}

// TextDocument is a text document as it stands in a prompt, named so that it is
// not taken for what the user says.
func TextDocument(m model.Media) string {
	return fmt.Sprintf("[document %s]\n%s\n[end of the document]", FileName(m), strings.ToValidUTF8(string(m.Data), "\uFFFD"))
}
