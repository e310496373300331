package keeper

import (
	"math"
	"os"
	"syscall"
	"unsafe"
)

// System calls and constants that package syscall lacks. Package unix, which has them, is initialized too late;
// TestCallsAreThoseOfTheSystem compares them.
const (
	sysCloseRange     = 436 // the same on all systems of Linux
	closeRangeCloexec = 1 << 2
	setChildSubreaper = 36
	waitAll           = 0 // P_ALL
)

// siginfoBytes is the size of the kernel's siginfo_t.
const siginfoBytes = 128

// closeOnExec marks all descriptors above stderr, so that a program gets those that it is handed and no others. Kernels
// before 5.11 cannot mark a range of them, and the filter of a container may refuse that.
func closeOnExec() error {
	if _, _, errno := syscall.Syscall(sysCloseRange, 3, math.MaxInt32, closeRangeCloexec); errno == 0 {
		return nil
	}
	names, err := os.ReadDir("/proc/self/fd")
	for _, n := range names {
		if fd, ok := parseNumber(n.Name()); ok && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return err
}

// becomeSubreaper makes this process the parent of all descendants that lose their own.
func becomeSubreaper() syscall.Errno {
	_, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, setChildSubreaper, 1, 0, 0, 0, 0)
	return errno
}

// hasChildren reports whether this process has children, including those that have ended and were not reaped. An
// error other than ECHILD counts as yes.
func hasChildren() bool {
	var info [siginfoBytes]byte
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, waitAll, 0, uintptr(unsafe.Pointer(&info)),
		syscall.WEXITED|syscall.WNOHANG|syscall.WNOWAIT|syscall.WALL, 0, 0)
	return errno != syscall.ECHILD
}
