package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// oldKernelVar makes this test binary run a program where the kernel answers close_range with this number of an error.
const oldKernelVar = "PROC_TEST_CLOSE_RANGE"

func init() {
	if errno := os.Getenv(oldKernelVar); errno != "" {
		if err := runWithoutCloseRange(errno); err != nil {
			fmt.Println(err)
			syscall.Exit(1)
		}
		syscall.Exit(0) // os.Exit sleeps for a second under the race detector
	}
}

// runWithoutCloseRange runs a program that lists its descriptors where close_range fails, and has a descriptor open that
// programs inherit.
func runWithoutCloseRange(errno string) error {
	var number uint32
	if _, err := fmt.Sscan(errno, &number); err != nil {
		return err
	}
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_CLOSE_RANGE},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | number}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter))); errno != 0 {
		return errno
	}
	if _, err := unix.Dup(0); err != nil {
		return err
	}
	out, err := Run(context.Background(), Spec{Argv: shellArgv("ls /proc/$$/fd; exit 0"), Env: []string{"PATH=" + os.Getenv("PATH")}})
	fmt.Printf("%s", out.Stdout)
	return err
}

// Kernels before 5.11 cannot mark a range of descriptors, and the filter of a container may refuse the call. The program
// still inherits no descriptor: one that it has open would hide from the node that it has started.
func TestProgramInheritsNoDescriptorWithoutCloseRange(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EINVAL, unix.EPERM} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{fmt.Sprintf("%s=%d", oldKernelVar, errno), "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "0\n1\n2\n" {
			t.Errorf("close_range fails with %q: %v, the program has the descriptors %q", errno, err, out)
		}
	}
}

// descriptorsOfStart is how many descriptors Start opens at once, at least.
const descriptorsOfStart = 8

// Start closes all descriptors that it has opened when no more can be opened, whichever it fails at. This test runs
// alone: it changes a limit of the process.
func TestFailedStartLeavesNoDescriptor(t *testing.T) {
	spec := Spec{Argv: []string{"true"}, Env: []string{"PATH=" + os.Getenv("PATH")}}
	c, err := Start(spec) // also opens what the runtime keeps open
	if err != nil {
		t.Fatal(err)
	}
	c.Stop()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it closes files that nothing refers to
	for spare := range descriptorsOfStart {
		before := countDescriptors(t)
		func() {
			defer leaveDescriptors(t, spare)()
			if c, err := Start(spec); err == nil {
				t.Errorf("a program starts with %d descriptors", spare)
				c.Stop()
			}
		}()
		if after := countDescriptors(t); after != before {
			t.Errorf("with %d descriptors to open, %d are left open", spare, after-before)
		}
	}
}

// leaveDescriptors lets this process open so many further descriptors until the result is called.
func leaveDescriptors(t *testing.T, spare int) (restore func()) {
	t.Helper()
	const limit = 256
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	var opened []int
	for {
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			break
		}
		opened = append(opened, fd)
	}
	for _, fd := range opened[:spare] {
		_ = unix.Close(fd)
	}
	return func() {
		for _, fd := range opened[spare:] {
			_ = unix.Close(fd)
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}
}

// countDescriptors returns how many descriptors this process has open.
func countDescriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
