package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// nprocVersion is the first kernel that counts processes by user namespace.
var nprocVersion = [2]int{5, 14}

// setLimits bounds each process. The helper is bound by them too, and needs less.
func (s *confinement) setLimits() error {
	limits := []struct {
		what  int
		value uint64
	}{
		{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_FSIZE, FileBytesMax}, {unix.RLIMIT_NOFILE, DescriptorsMax},
		{unix.RLIMIT_DATA, uint64(s.task.Memory)}, {unix.RLIMIT_NPROC, s.processLimit()},
	}
	for _, l := range limits {
		var now unix.Rlimit
		if err := unix.Prlimit(0, l.what, nil, &now); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
		least := min(l.value, now.Max) // it may be tighter already
		if err := unix.Prlimit(0, l.what, &unix.Rlimit{Cur: least, Max: least}, nil); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
	}
	s.noteFinding(Memory, true, "%d MiB for each process", s.task.Memory>>20)
	for _, f := range s.report {
		if f.What == Processes {
			return nil
		}
	}
	if os.Geteuid() == 0 { // also within a namespace: the kernel looks at who it is outside
		s.noteFinding(Processes, false, "the node runs as root, which kernels before 6.14 do not limit")
		return nil
	}
	s.noteFinding(Processes, true, "at most %d at once", s.processLimit())
	return nil
}

// processLimit returns the limit as the kernel counts: the processes of a namespace, or all of
// the user's, including those that already run.
func (s *confinement) processLimit() uint64 {
	n := uint64(s.task.Processes)
	if s.task.User && kernelAtLeast(nprocVersion) {
		return n
	}
	load, err := os.ReadFile("/proc/loadavg") // 0.00 0.01 0.05 2/345 6789
	if fields := strings.Fields(string(load)); err == nil && len(fields) > 3 {
		if _, total, ok := strings.Cut(fields[3], "/"); ok {
			if running, err := strconv.ParseUint(total, 10, 32); err == nil {
				return n + running
			}
		}
	}
	return 4 * n
}

// lastCap is above the last capability that any kernel knows.
const lastCap = 63

// secureBits make user 0 a user like any other, for good: NOROOT,
// NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, and the locks of all four bits
// (linux/securebits.h; package unix does not name them).
const secureBits = 0xef

// dropPrivileges ensures that the command has no privileges and gains none.
func (s *confinement) dropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("capabilities: %w", err)
	}
	err := unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0)
	for c := uintptr(0); c <= lastCap && err == nil; c++ {
		if drop := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); errors.Is(drop, unix.EPERM) {
			err = drop
		}
	}
	if err != nil && os.Geteuid() == 0 {
		s.noteFinding(Privileges, false, "the node runs as root and may not give its rights up: %v", err)
		return nil
	}
	// A user other than root loses all privileges when a program starts, and the command gains none.
	s.noteFinding(Privileges, true, "no_new_privs, no capabilities")
	return nil
}
