package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// NameBytesShown is how much is shown of a name that a model or another run chose.
const NameBytesShown = 64

// OneLine joins the words of a text by single spaces.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

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
			names[c.ID] = OneLine(Clip(c.Name, NameBytesShown))
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

// firstPart is the divisor of the room that the oldest lines get.
const firstPart = 4

// FitLines keeps the first lines and the last ones, as far as the room allows.
func FitLines(lines []string, room int) string {
	head, used := 0, 0
	for head < len(lines) && used+len(lines[head])+1 <= room/firstPart {
		used += len(lines[head]) + 1
		head++
	}
	tail := len(lines)
	for tail > head && used+len(lines[tail-1])+1 <= room {
		used += len(lines[tail-1]) + 1
		tail--
	}
	if tail == head {
		return strings.Join(lines, "\n")
	}
	gap := fmt.Sprintf("(left out here: %d lines)", tail-head)
	return strings.Join(slices.Concat(lines[:head], []string{gap}, lines[tail:]), "\n")
}

// ClipEnds keeps the beginning and the end of a text.
func ClipEnds(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Clip(s, n*2/3) + " " + strings.ToValidUTF8(s[len(s)-n/3:], "")
}

// ClipAround keeps the part of a text that contains a word, if the ends of the
// text do not show it.
func ClipAround(s, word string, n int) string {
	at := strings.Index(s, word)
	if word == "" || at < 0 || len(s) <= n || at+len(word) <= n*2/3 {
		return ClipEnds(s, n)
	}
	from := max(0, min(at-n/2, len(s)-n))
	return "… " + Clip(strings.ToValidUTF8(s[from:], ""), n)
}

// Clip keeps the first n bytes of a text and says that there was more.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " …"
}
