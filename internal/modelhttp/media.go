package modelhttp

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// EncodeBase64 returns a medium in the form that APIs accept.
func EncodeBase64(m model.Media) string { return base64.StdEncoding.EncodeToString(m.Data) }

// DataURL returns a medium for APIs that want a URL.
func DataURL(m model.Media) string { return "data:" + m.Type + ";base64," + EncodeBase64(m) }

// FileName is the name of a medium, which some APIs demand.
func FileName(m model.Media) string {
	if IsBlank(m.Name) {
		return "attachment"
	}
	return m.Name
}

// TextDocument renders a text document for a prompt, with its name, so that the model does
// not take it for the user's own words.
func TextDocument(m model.Media) string {
	return fmt.Sprintf("[document %s]\n%s\n[end of the document]", FileName(m), strings.ToValidUTF8(string(m.Data), "\uFFFD"))
}
