package filechange

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkWatch is what a command costs that changes one file of a directory of 5,000.
func BenchmarkWatch(b *testing.B) {
	dir := b.TempDir()
	for i := range 5000 {
		name := filepath.Join(dir, fmt.Sprintf("d%d/f%d.go", i%50, i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.Repeat("package x\n", 200)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	at, err := os.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = at.Close() }()
	n := 0
	for b.Loop() {
		compare := Watch(b.Context(), at, nil)
		n++
		if err := os.WriteFile(filepath.Join(dir, "d1/f1.go"), fmt.Appendf(nil, "%d", n), 0o600); err != nil {
			b.Fatal(err)
		}
		if changes, lost := compare(); len(changes) != 1 || lost != "" {
			b.Fatalf("%d changes, %s", len(changes), lost)
		}
	}
}
