// Package clip shortens texts without splitting a character. Everything here is pure.
package clip

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Prefix returns the longest prefix of at most n bytes that ends with a whole character.
func Prefix(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n = max(n, 0); n > 0 && !utf8.RuneStart(s[n]); n-- {
	}
	return s[:n]
}

// Marked keeps the first n bytes of a longer text, without bytes that are not UTF-8, and adds mark.
func Marked(s string, n int, mark string) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + mark
}

// Text keeps the first n bytes of a text and says that there was more.
func Text(s string, n int) string { return Marked(s, n, " …") }

// Ends keeps the beginning and the end of a text.
func Ends(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Text(s, n*2/3) + " " + strings.ToValidUTF8(s[len(s)-n/3:], "")
}

// Around keeps the part of a text that contains a word, if the ends of the
// text do not show it.
func Around(s, word string, n int) string {
	at := strings.Index(s, word)
	if word == "" || at < 0 || len(s) <= n || at+len(word) <= n*2/3 {
		return Ends(s, n)
	}
	from := max(0, min(at-n/2, len(s)-n))
	return "… " + Text(strings.ToValidUTF8(s[from:], ""), n)
}

// Middle keeps the beginning and the end of a longer text, in whole lines as far as they are short enough, and says how
// much it leaves out between.
func Middle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	head, tail := Prefix(s, n*2/3), s[len(s)-n/4:]
	if i := strings.LastIndexByte(head, '\n'); i > n/3 {
		head = head[:i]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < n/8 {
		tail = tail[i+1:]
	} else {
		tail = strings.TrimLeftFunc(tail, func(r rune) bool { return r == utf8.RuneError })
	}
	left := s[len(head) : len(s)-len(tail)]
	lines := strings.Count(strings.Trim(left, "\n"), "\n") + 1
	return head + fmt.Sprintf("\n%s%d lines, %d bytes are not shown here …]\n", middleMark, lines, len(left)) + tail
}

// middleMark begins the line in place of the text that Middle leaves out.
const middleMark = "[… "

// IsMiddle reports whether Middle has left out a part of a text.
func IsMiddle(s string) bool { return strings.Contains(s, "\n"+middleMark) }

// OneLine joins the words of a text by single spaces.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// FirstLine returns the first line of a text that is not empty, without the space around it.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// Names joins the first names of a list, at most so many, and counts the rest.
func Names(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// firstPart is the divisor of the room that the oldest lines get.
const firstPart = 4

// Lines keeps the first lines and the last ones, as far as the room allows.
func Lines(lines []string, room int) string {
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
