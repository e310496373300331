package term

import (
	"strings"
	"testing"
	"time"
)

// Of a cancel a person reads what it ended, and not the word of the documents.
func TestACancelSaysWhatItEnded(t *testing.T) {
	for word, want := range map[string]string{
		"aborted_streaming": "canceled (at a model call)  2.0s", "aborted_tools": "canceled (tool aborted)  2.0s", "canceled": "canceled  2.0s", "max_turns": "max_turns  2.0s",
	} {
		var tree Tree
		tree.AddEvent(parseEvent(t, `{"run":"r","agent":"root","ts":"2026-01-02T03:04:00Z","kind":"agent.started","data":{"name":"boss"}}`))
		tree.AddEvent(parseEvent(t, `{"run":"r","agent":"root","ts":"2026-01-02T03:04:02Z","kind":"agent.finished","data":{"stop_reason":"`+word+`"}}`))
		if row := tree.Row(Style{}, "root", 80, time.Time{}); !strings.Contains(row, want) {
			t.Errorf("%s: %q", word, row)
		}
	}
}

// A row names the person who canceled the run, as the line below the tree does.
func TestACanceledAgentNamesWhoCanceled(t *testing.T) {
	var tree Tree
	for _, doc := range []string{
		`{"run":"r","agent":"root","kind":"agent.started","data":{"name":"boss"}}`,
		`{"run":"r","agent":"super","kind":"warning.raised","data":{"what":"cancel","why":"canceled by a person","by":"ann","live":1}}`,
		`{"run":"r","agent":"root","kind":"agent.finished","data":{"stop_reason":"canceled","detail":"canceled by a person"}}`,
	} {
		tree.AddEvent(parseEvent(t, doc))
	}
	if row := tree.Row(Style{}, "root", 80, time.Time{}); !strings.Contains(row, "canceled by user ann") {
		t.Error(row)
	}
}

// One who canceled an agent is named by it and by those below it, and by nobody else.
func TestAnAgentNamesWhoCanceledIt(t *testing.T) {
	var tree Tree
	for _, doc := range []string{
		`{"run":"r","agent":"root","kind":"agent.started","data":{"name":"boss"}}`,
		`{"run":"r","agent":"super","kind":"agent.spawned","data":{"id":"root-1-0","name":"clerk","parent":"root"}}`,
		`{"run":"r","agent":"super","kind":"agent.spawned","data":{"id":"root-1-0-1-0","name":"page","parent":"root-1-0"}}`,
		`{"run":"r","agent":"super","kind":"warning.raised","data":{"what":"cancel","agent":"root-1-0","why":"canceled by a person","by":"ann","live":3}}`,
		`{"run":"r","agent":"root-1-0-1-0","kind":"agent.finished","data":{"stop_reason":"aborted_tools","detail":"canceled by a person"}}`,
		`{"run":"r","agent":"root-1-0","kind":"agent.finished","data":{"stop_reason":"canceled","detail":"canceled by a person"}}`,
		`{"run":"r","agent":"super","kind":"warning.raised","data":{"what":"cancel","why":"canceled by a person","by":"ben","live":1}}`,
		`{"run":"r","agent":"root","kind":"agent.finished","data":{"stop_reason":"aborted_streaming","detail":"canceled by a person"}}`,
	} {
		tree.AddEvent(parseEvent(t, doc))
	}
	for id, want := range map[string]string{"root": "canceled (at a model call) by user ben", "root-1-0": " canceled by user ann", "root-1-0-1-0": "canceled (tool aborted) by user ann"} {
		if row := tree.Row(Style{}, id, 100, time.Time{}); !strings.Contains(row, want) {
			t.Errorf("%s: %q", id, row)
		}
	}
}

// A delegation's end has no time of its own in its event, and 0 ms would be wrong.
func TestAnEndWithoutATimeShowsNone(t *testing.T) {
	if text := EventDetail(parseEvent(t, `{"run":"r","agent":"root","kind":"delegation.finished","data":{"call":"1-0","tool":"delegate","child":"root-1-0","text":"x","bytes":1}}`)); strings.Contains(text, "0ms") {
		t.Error(text)
	}
}
