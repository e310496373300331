package actors

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/troupe-run/troupe/internal/pidregistry"
)

// A program's actor system takes some 12 MiB with the map library's own number of locks. The number is of the process,
// so this test has one of its own.
func TestAProgramsActorSystemIsSmall(t *testing.T) {
	const inProgram = "TROUPE_TEST_SMALL_SYSTEM"
	if os.Getenv(inProgram) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAProgramsActorSystemIsSmall$")
		cmd.Env = append(os.Environ(), inProgram+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	pidregistry.ShareOneLockPerMap()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	system := newSystem()
	runtime.ReadMemStats(&after)
	if size := after.TotalAlloc - before.TotalAlloc; size > 2<<20 {
		t.Errorf("a system allocates %d KiB", size>>10)
	}
	if locks := len(system.ProcessRegistry.LocalPIDs.LocalPIDs); locks != 256 {
		t.Errorf("its ids have %d locks, want 256", locks)
	}
	system.Shutdown()
}
