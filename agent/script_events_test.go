package agent_test

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

// eventLog is what observers are told in a script, as one line of JSON for each event.
type eventLog struct{ bytes.Buffer }

// addEvents adds the events of the step that read entry n.
func (h *eventLog) addEvents(t *testing.T, n uint64, notes []event.Event) {
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
func compareEvents(t *testing.T, scripts map[string]*eventLog) {
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

// noteData prints what an observer is told, as on the wire, without the parts that are zero.
func noteData(t *testing.T, data any) string {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	var v any
	if err := in.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(withoutZeros(v)); err != nil {
		t.Fatal(err)
	}
	return clipData(strings.TrimSpace(b.String()))
}

// withoutZeros removes fields of JSON that are zero; what has no other field is zero, too.
func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if inner = withoutZeros(inner); inner == nil {
				delete(v, k)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	case json.Number:
		if v == "0" {
			return nil
		}
	}
	return v
}
