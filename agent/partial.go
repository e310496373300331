package agent

import (
	"fmt"
	"strings"
)

// found is the partial result when no model may be asked any more: the last
// text and the newest results, as the transcript has them.
func (s State) found() string {
	var b strings.Builder
	b.WriteString(clip(s.LastText(), AnswerBytesMax))
	names := map[string]string{}
	for _, m := range s.History {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
	}
	room := foundBytesMax
	for i := len(s.History) - 1; i >= s.Recalled && room > 0; i-- {
		for _, r := range s.History[i].Results {
			if r.Error || room <= 0 || s.journalTool(names[r.Call]) {
				continue
			}
			text := clip(r.Text, min(room, foundResultMax))
			room -= len(text)
			fmt.Fprintf(&b, "\n\n%s returned:\n%s", names[r.Call], text)
		}
	}
	if b.Len() == 0 {
		return "nothing was found yet"
	}
	return strings.TrimSpace(b.String())
}

const (
	foundBytesMax  = 4 << 10 // of results in a partial result made by software
	foundResultMax = 1 << 10
)
