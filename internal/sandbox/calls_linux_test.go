package sandbox_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// forbiddenCall makes one call that no command needs.
func forbiddenCall(what string) (err error) {
	switch what {
	case "keyctl":
		_, err = unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
	case "add_key":
		_, err = unix.AddKey("user", "troupe-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
	case "memfd":
		_, err = unix.MemfdCreate("x", 0)
	case "shm":
		_, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600)
	case "udp":
		_, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	default:
		err = fmt.Errorf("no such call")
	}
	return err
}

// TestAttackCallsAroundTheLimitsAreRefused: keyrings, memory that no limit counts, and without a network namespace any socket.
func TestAttackCallsAroundTheLimitsAreRefused(t *testing.T) {
	eachBox(t, func(t *testing.T, b *testBox) {
		for _, what := range []string{"keyctl", "add_key", "memfd", "shm", "udp"} {
			if what == "udp" && !b.less.Namespaces {
				continue // its namespace has a loopback alone
			}
			if out := b.probeInBox("call %s", what); out.Exit == 0 || !strings.Contains(string(out.Stdout), "refused") {
				t.Errorf("%s: %s", what, out.Stdout)
			}
		}
	})
}
