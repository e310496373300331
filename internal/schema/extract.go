package schema

import (
	"encoding/json"
	"strings"
)

const jsonFence = "```"

// ExtractJSON returns the JSON of an answer: the whole text, or its last fenced block that is JSON. Without any it returns the
// text, trimmed.
func ExtractJSON(text string) string {
	text = strings.TrimSpace(text)
	if json.Valid([]byte(text)) {
		return text
	}
	found, open, from, at := text, false, 0, 0
	for line := range strings.Lines(text) {
		end := at + len(line)
		info, fence := strings.CutPrefix(strings.TrimSpace(line), jsonFence)
		switch {
		case fence && open && info == "":
			if block := strings.TrimSpace(text[from:at]); json.Valid([]byte(block)) {
				found = block
			}
			open = false
		case fence && !open:
			open, from = true, end
		}
		at = end
	}
	return found
}
