package message

import (
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// NameBytesShown is how much is shown of a name that a model or another run chose.
const NameBytesShown = 64

// Record returns one entry for each message, call and result. Only entries start
// at the beginning of a line, so no result can pass for a person's message.
func Record(part []model.Message, short func(string) string) []string {
	var lines []string
	entry := func(head, text string) { lines = append(lines, head+strings.ReplaceAll(short(text), "\n", "\n  ")) }
	names := map[string]string{}
	for _, m := range part {
		if m.Tombstone {
			continue
		}
		if strings.TrimSpace(m.Text) != "" {
			who := "agent"
			if m.Role == model.User {
				who = "user"
			}
			entry(who+": ", m.Text)
		}
		for _, c := range m.Calls {
			names[c.ID] = clip.OneLine(clip.Text(c.Name, NameBytesShown))
			entry("agent calls "+names[c.ID]+" ", c.Args)
		}
		for _, r := range m.Results {
			word := "returned"
			if r.Error {
				word = "failed"
			}
			entry(names[r.Call]+" "+word+": ", r.Text)
		}
	}
	return lines
}
