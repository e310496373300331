// Package scripts plays the script tests of the pure machines: files of directives with the state
// and the effects that follow each. docs/scripts.md describes the format.
package scripts

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/test/golden"
)

// PlayFunc plays one directive and returns what it prints.
type PlayFunc func(t *testing.T, d *datadriven.TestData) string

// PlayAll plays testdata/*.txt, each script with a player of its own, which adds the events of
// its steps to the log. `go test PACKAGE -rewrite` records the output of the scripts.
func PlayAll(t *testing.T, newPlayer func(log *EventLog) PlayFunc) {
	t.Helper()
	logs := map[string]*EventLog{}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Ext(path) != ".txt" {
			return
		}
		logs[path] = &EventLog{}
		play := newPlayer(logs[path])
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return play(t, d)
		})
	})
	compareEvents(t, logs)
}

// Repeat plays the lines of a directive's input as often as its argument `times` says, and returns
// the last output. In a line, $i is the number of the round, from 1, and " | " separates the
// directive from the lines of its input.
func Repeat(t *testing.T, d *datadriven.TestData, play PlayFunc) string {
	t.Helper()
	var times int
	d.ScanArgs(t, "times", &times)
	out := ""
	for i := range times {
		for line := range strings.Lines(d.Input) {
			line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "$i", strconv.Itoa(i+1))
			head, body, _ := strings.Cut(line, " | ")
			cmd, args, err := datadriven.ParseLine(head)
			if err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			out = play(t, &datadriven.TestData{Pos: d.Pos, Cmd: cmd, CmdArgs: args, Input: strings.ReplaceAll(body, " | ", "\n")})
		}
	}
	return out
}

// EventLog holds the events of a script, one line of JSON for each.
type EventLog struct{ lines bytes.Buffer }

// AddEvents adds the events of the step that read entry n.
func (l *EventLog) AddEvents(t *testing.T, n uint64, events []event.Event) {
	t.Helper()
	for _, e := range events {
		line := struct {
			N    uint64
			Kind string
			Turn int
			Data any
		}{n, e.Kind, e.Turn, e.Data}
		if err := json.NewEncoder(&l.lines).Encode(line); err != nil {
			t.Fatal(err)
		}
	}
}

// compareEvents compares the events of all scripts with testdata/events.golden: a count and a hash
// for each script. The directive `notes` of a script shows the events behind a hash.
func compareEvents(t *testing.T, logs map[string]*EventLog) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(logs) != len(paths) {
		return // -run has chosen some of them
	}
	var b strings.Builder
	for _, path := range paths {
		raw := logs[path].lines.Bytes()
		fmt.Fprintf(&b, "%s %d events %.8x\n", filepath.Base(path), bytes.Count(raw, []byte("\n")), sha256.Sum256(raw))
	}
	golden.Compare(t, filepath.Join("testdata", "events.golden"), b.String())
}
