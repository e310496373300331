package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// TestRoomCountsTheLogsInFiles: what the logs take already is not missing from what they may take
// after a restart.
func TestRoomCountsTheLogsInFiles(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{filepath.Join(statedir.LogsDir(dir), "journal"), filepath.Join(dir, "jetstream", "blocks")} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, make([]byte, 1000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if used, err := usedBytes(filepath.Join(dir, "jetstream"), statedir.LogsDir(dir), filepath.Join(dir, "nowhere")); used != 2000 || err != nil {
		t.Errorf("used %d, %v", used, err)
	}
}
