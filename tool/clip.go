package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// clipMarkBytes is the room for the line that marks the clipped part.
const clipMarkBytes = 96

// lineSlack is how far a cut may move to reach the end of a line.
const lineSlack = 400

// Clip keeps the head and the tail of a text that is longer than limit, cuts at
// line ends where they are near, and states the original length:
//
//	[clipped: 123456 bytes, showing the first 40000 and last 20000]
func Clip(s string, limit int) string { return clipSized(s, limit, int64(len(s))) }

func clipSized(s string, limit int, size int64) string {
	if len(s) <= limit {
		return s
	}
	room := max(limit-clipMarkBytes, 0)
	head, tail := room*2/3, len(s)-(room-room*2/3)
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	if at := strings.LastIndexByte(s[:head], '\n'); at >= 0 && head-at-1 <= min(lineSlack, room/4) {
		head = at + 1
	}
	if at := strings.IndexByte(s[tail:], '\n'); at >= 0 && at < min(lineSlack, room/4) {
		tail += at + 1
	}
	before := ""
	if head > 0 && s[head-1] != '\n' {
		before = "\n"
	}
	return fmt.Sprintf("%s%s[clipped: %d bytes, showing the first %d and last %d]\n%s", s[:head], before, size, head, len(s)-tail, s[tail:])
}
