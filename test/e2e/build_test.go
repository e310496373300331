//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// buildTroupe builds the binary that the tests run.
func buildTroupe(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "troupe")
	cmd := exec.Command("go", "build", "-o", bin, "github.com/troupe-run/troupe/cmd/cli")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}
