package term

import (
	"strings"
	"testing"
	"time"
)

// Of a cancel a person reads what it ended, and not the word of the documents.
func TestACancelSaysWhatItEnded(t *testing.T) {
	for word, want := range map[string]string{
		"aborted_streaming": "canceled (model call aborted)  2.0s", "aborted_tools": "canceled (tool aborted)  2.0s", "canceled": "canceled  2.0s", "max_turns": "max_turns  2.0s",
	} {
		var tree Tree
		tree.AddEvent(parseEvent(t, `{"run":"r","agent":"root","ts":"2026-01-02T03:04:00Z","kind":"agent.started","data":{"name":"boss"}}`))
		tree.AddEvent(parseEvent(t, `{"run":"r","agent":"root","ts":"2026-01-02T03:04:02Z","kind":"agent.finished","data":{"stop_reason":"`+word+`"}}`))
		if row := tree.Row(Style{}, "root", 80, time.Time{}); !strings.Contains(row, want) {
			t.Errorf("%s: %q", word, row)
		}
	}
}
