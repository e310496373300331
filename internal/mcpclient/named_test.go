package mcpclient_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-run/troupe/internal/mcpclient"
)

// `node .` runs the index.js of the directory, so that file is pinned as one that is
// named.
func TestAttackADirectoryThatIsStartedIsPinned(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "index.js"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arg := range []string{".", "./"} {
		files, err := mcpclient.Server{Name: "s", Command: "node", Args: []string{arg}}.NamedFiles(dir, func(string) string { return "" })
		if err != nil || len(files) == 0 {
			t.Errorf("node %s: %v, %v; want index.js pinned", arg, files, err)
		}
	}
}
