package keeper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// brokenVar makes this test binary become a keeper for which one system call fails with EMFILE.
const brokenVar = "KEEPER_TEST_WITHOUT_CALL"

func init() {
	if number := os.Getenv(brokenVar); number != "" {
		fmt.Println(becomeBrokenKeeper(number)) // it returns only if it fails
		syscall.Exit(1)
	}
}

func becomeBrokenKeeper(number string) error {
	call, _ := parseNumber(number)
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(call)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EMFILE)}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter))); errno != 0 {
		return errno
	}
	return syscall.Exec("/proc/self/exe", append([]string{Name}, os.Args[1:]...), []string{"PATH=" + os.Getenv("PATH")})
}

// A keeper that cannot give up the streams of its program ends the program before it says that it did not start it.
func TestKeeperWithoutStreamsEndsItsProgram(t *testing.T) {
	theirLife, life, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer life.Close()
	failed, theirFailed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer failed.Close()
	numbers := Description{Attr: &syscall.SysProcAttr{Setpgid: true}}.Numbers()
	cmd := exec.Command(os.Args[0], numbers, "/bin/sleep", "sleep", "60")
	cmd.Env = []string{fmt.Sprintf("%s=%d", brokenVar, unix.SYS_DUP3), "PATH=" + os.Getenv("PATH")}
	cmd.ExtraFiles = []*os.File{theirLife, theirFailed}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirLife.Close(), theirFailed.Close()
	why, err := io.ReadAll(failed)
	if err != nil || !strings.HasSuffix(string(why), " standard streams: "+syscall.EMFILE.Error()) {
		t.Errorf("the keeper says %q, %v", why, err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != failedExit {
		t.Errorf("the keeper ends with %v", err)
	}
}
