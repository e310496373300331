//go:build attacks && linux

package attacks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttackPlantedStateIsNotTrusted: what another account put into a state directory
// that it could write decides nothing, also after its mode was tightened.
func TestAttackPlantedStateIsNotTrusted(t *testing.T) {
	dir := filepath.Join(owner.home, "shared")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, int(owner.uid), int(owner.gid)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if r := runCommand(t, attacker.newCommand(t, "sh", "-c", "echo \"holds troupe's state\" >"+dir+"/owner.lock && mkdir "+dir+"/approved")); r.code != 0 {
		t.Fatalf("the attacker cannot plant: %s", r.stderr)
	}
	for _, mode := range []os.FileMode{0o777, 0o700} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		r := runCommand(t, owner.newCommand(t, nodeBinary, "--store-dir", dir))
		if r.code != 2 && r.code != 6 && r.code != 1 || !strings.Contains(r.stderr, "choose another --store-dir") {
			t.Errorf("mode %o: exit code %d, %s", mode, r.code, r.stderr)
		}
	}
}
