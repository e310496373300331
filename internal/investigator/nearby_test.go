package investigator_test

import (
	"strings"
	"testing"
)

// TestOnlyUnexplainedDropsAreReported: a write that cannot fail, and one that its author explains or defers, is no
// finding; the one that is left is.
func TestOnlyUnexplainedDropsAreReported(t *testing.T) {
	const explained = `package p

func hashed(id string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte{0})
	sum := sha256.New()
	_, _ = sum.Write([]byte(id))
	var out strings.Builder
	out.Grow(9)
	_, _ = out.WriteString("a")
	_ = f.Sync() // the next start reads it again
	// A reader that has gone is told nothing.
	_ = w.Flush()
	defer func() {
		_ = log.Sync()
	}()
}
`
	dir := t.TempDir()
	writeFile(t, dir, "go.mod", "module p\n\ngo 1.25\n")
	writeFile(t, dir, "explained.go", explained)
	newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
	if md := readFile(t, dir, "report.md"); strings.Contains(md, "dropped with") {
		t.Errorf("a drop that is no defect is reported:\n%s", md)
	}
	writeFile(t, dir, "lost.go", "package p\n\nfunc save() {\n\trow := next()\n\n\t_ = db.Save(row)\n}\n")
	newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
	if md := readFile(t, dir, "report.md"); !strings.Contains(md, "dropped with `_ =` in 1 place") || !strings.Contains(md, "`lost.go:6`") || strings.Contains(md, "`explained.go:5") {
		t.Errorf("no finding about lost.go:\n%s", md)
	}
}
