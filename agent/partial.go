package agent

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// partialResult is the partial result when the loop may call no model any more: the last
// text and the newest results of the transcript.
func partialResult(s *State) string {
	var b strings.Builder
	b.WriteString(clip.Text(s.lastText(), answerBytesMax))
	calls := map[string]model.ToolCall{}
	for _, m := range s.History {
		for _, c := range m.Calls {
			calls[c.ID] = c
		}
	}
	room := foundBytesMax
	for i := len(s.History) - 1; i >= s.Recalled && room > 0; i-- {
		if m := s.History[i]; m.Role == model.User && strings.HasPrefix(m.Text, answerHead) {
			text := clip.Text(m.Text, min(room, foundResultMax))
			room -= len(text)
			b.WriteString("\n\n" + text)
		}
		for _, r := range s.History[i].Results {
			c := calls[r.Call]
			if r.Error || room <= 0 || s.tools.isJournal(c.Name) || s.tools.onlyConfirms(c) {
				continue
			}
			text := clip.Text(r.Text, min(room, foundResultMax))
			room -= len(text)
			fmt.Fprintf(&b, "\n\n%s returned:\n%s", c.Name, text)
		}
	}
	if b.Len() == 0 {
		return spec.NothingFound
	}
	return strings.TrimSpace(b.String())
}

const (
	foundBytesMax  = 4 << 10 // of results in a partial result made by software
	foundResultMax = 1 << 10
)
