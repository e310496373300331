package supervisor_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/test/golden"
)

// heardEvents is what observers are told in a script, as one line of JSON for each event.
type heardEvents struct{ bytes.Buffer }

// addEvents adds the events of the step that read entry n.
func (h *heardEvents) addEvents(t *testing.T, n uint64, notes []event.Event) {
	t.Helper()
	for _, note := range notes {
		line := struct {
			N    uint64
			Kind string
			Turn int
			Data any
		}{n, note.Kind, note.Turn, note.Data}
		if err := json.NewEncoder(h).Encode(line); err != nil {
			t.Fatal(err)
		}
	}
}

// compareEvents compares the events of all scripts with testdata/events.golden, also
// of those steps that show none: a count and a hash for each script. The directive
// notes in a script shows what a hash stands for.
func compareEvents(t *testing.T, scripts map[string]*heardEvents) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(scripts) != len(paths) {
		return // -run has chosen some of them
	}
	var b strings.Builder
	for _, path := range paths {
		raw := scripts[path].Bytes()
		fmt.Fprintf(&b, "%s %d events %.8x\n", filepath.Base(path), bytes.Count(raw, []byte("\n")), sha256.Sum256(raw))
	}
	golden.Compare(t, filepath.Join("testdata", "events.golden"), b.String())
}
