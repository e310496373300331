package nodes

import (
	"strings"
	"testing"
)

// TestAttackANodesOutputSteersNoTerminal: what a node under `troupe up` prints may quote
// anybody.
func TestAttackANodesOutputSteersNoTerminal(t *testing.T) {
	var out strings.Builder
	w := &lineWriter{to: &out}
	w.writeLine("node-1 | file \x1b]0;taken\x07\u202e\rready")
	if got, want := out.String(), `node-1 | file \x1b]0;taken\x07\u202e\x0dready`+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
