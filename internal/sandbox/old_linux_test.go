package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/internal/sandbox"
)

// TestReadOnlyIsOnlySaidWhereItIs: kernels before 5.12, and filters of containers,
// do not know the calls that make all else read-only.
func TestReadOnlyIsOnlySaidWhereItIs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a person's")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range []string{"nothing", "open_tree", "mount_setattr"} {
		for _, landlock := range []string{"with", "without"} {
			if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), probeVar+"=old "+missing+" "+landlock+" "+t.TempDir(), "FILE="+file)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v %s", missing, err, out)
			}
			if err := os.Chmod(file, 0o600); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			written, changed := len(data) != 1, strings.Contains(string(out), "changed")
			if said := strings.Contains(string(out), "mounted read-only"); said && changed {
				t.Errorf("without %s, %s Landlock, read-only is said, and a mode was changed: %s", missing, landlock, out)
			}
			if said := strings.Contains(string(out), "be read or written"); written && !said {
				t.Errorf("without %s, %s Landlock, a file was written, and that is not said: %s", missing, landlock, out)
			}
		}
	}
}

// runOnOldKernel runs a command where the kernel lacks a call, and says what became of it.
func runOnOldKernel(missing, landlock, dir string) error {
	if nr, ok := map[string]uint32{"open_tree": unix.SYS_OPEN_TREE, "mount_setattr": unix.SYS_MOUNT_SETATTR}[missing]; ok {
		program := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: nr},
			{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(unix.ENOSYS)}, {Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},
		}
		filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter))); errno != 0 {
			return errno
		}
	}
	out, err := sandbox.Run(context.Background(), sandbox.Spec{Dir: dir, Env: []string{"FILE=" + os.Getenv("FILE")}, Less: sandbox.Less{Landlock: landlock == "without"},
		Command: `chmod 644 "$FILE" && echo changed; echo more >>"$FILE"`})
	fmt.Printf("%s\n%s\n%s\n", out.Stdout, out.Report, out.Report.Missing())
	return err
}
