package archtest

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
)

// literalKinds are the folders whose files may write out the kind of an event: the one that
// names them, what lies below it, and a judge that shares no code with the rest.
var literalKinds = []string{"agent/event", "internal/bus", "mailbox", "cmd/evidence"}

// TestEventKindsAreNamedOnce: a kind of event is a constant of package event, and no literal
// elsewhere.
func TestEventKindsAreNamedOnce(t *testing.T) {
	kinds := slices.Collect(maps.Keys(event.RunKinds()))
	kinds = slices.AppendSeq(kinds, maps.Keys(event.NodeKinds()))
	for _, f := range readSources(t) {
		if slices.ContainsFunc(literalKinds, func(dir string) bool { return f.dir == dir || strings.HasPrefix(f.dir, dir+"/") }) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && slices.Contains(kinds, text) {
					t.Errorf("%s writes out the kind %q: package event has a constant for it", f.lineOf(n), text)
				}
			}
			return true
		})
	}
}
