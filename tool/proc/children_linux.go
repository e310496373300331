package proc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sweepPause is between two looks at who is left.
const sweepPause = 2 * time.Millisecond

// EndChildren kills all that this process has started, for a process that is a subreaper and reaps (see Reap): what
// loses its parent becomes its child, wherever it went, so it has left nothing behind once it has no child. The kernel
// says that, not a list: while a list is read, a process forks and ends, and its child is not listed. The process
// that waits for this one kills it if it takes too long.
func EndChildren() {
	tick := time.NewTicker(sweepPause)
	defer tick.Stop()
	for hasChildren() {
		found := false
		for _, pid := range children() {
			found = syscall.Kill(pid, syscall.SIGKILL) == nil || found // one that is gone already is what we want
		}
		if !found { // else look again at once: a process that forks and ends is faster than any pause
			<-tick.C
		}
	}
}

// hasChildren reports whether this process has children, also such as have ended and were not reaped. An error that
// is not ECHILD is a yes: EndChildren is bounded by the process that waits.
func hasChildren() bool {
	return !errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil), unix.ECHILD)
}

// children are the live children of this process, as far as one look finds them.
func children() []int {
	if list, ok := listedChildren(); ok {
		return list
	}
	return scannedChildren(os.Getpid())
}

// listedChildren reads the kernel's own lists, one for each thread, in a moment; ok is false where it keeps none.
func listedChildren() (list []int, ok bool) {
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, false
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that has ended
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list, len(files) > 0
}

// scannedChildren looks at every process of the machine.
func scannedChildren(of int) []int {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var list []int
	for _, n := range names {
		pid, err := strconv.Atoi(n.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + n.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid …; a name may hold anything, also parentheses
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && string(fields[1]) == strconv.Itoa(of) && string(fields[0]) != "Z" && string(fields[0]) != "X" {
			list = append(list, pid)
		}
	}
	return list
}

// Reap takes the ends of all that is or becomes our child, and sends that of one.
func Reap(child int, ended chan<- syscall.WaitStatus) {
	for {
		var how syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &how, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return // none is left
		case pid == child:
			ended <- how
		}
	}
}
