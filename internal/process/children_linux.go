package process

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

// sweepPause is the time between two searches for remaining processes.
const sweepPause = 2 * time.Millisecond

// EndChildren kills all descendants of this process, which must be a subreaper that reaps (see ReapChildren): a
// descendant that loses its parent becomes a child of this process, whatever its group or session. So once this
// process has no child, it has no descendant. The kernel decides that, not a list: while a list is read, a process
// forks and ends, and its child is not listed. The process that waits for this one kills it if it takes too long.
func EndChildren() {
	tick := time.NewTicker(sweepPause)
	defer tick.Stop()
	for hasChildren() {
		found := false
		for _, pid := range liveChildren() {
			found = syscall.Kill(pid, syscall.SIGKILL) == nil || found // one that is gone already is what we want
		}
		if !found { // else look again at once: a process that forks and ends is faster than any pause
			<-tick.C
		}
	}
}

// hasChildren reports whether this process has children, including those that have ended and were not reaped. An
// error other than ECHILD counts as yes: the process that waits bounds EndChildren.
func hasChildren() bool {
	return !errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil), unix.ECHILD)
}

// liveChildren returns the live children of this process, as far as one search finds them.
func liveChildren() []int {
	if list, ok := listedChildren(); ok {
		return list
	}
	return scannedChildren(os.Getpid())
}

// listedChildren reads the kernel's own lists, one for each thread, which is fast; ok is false if the kernel has
// none.
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

// scannedChildren reads the state of every process of the machine.
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
		// pid (name) state ppid …; a name may contain anything, including parentheses
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && string(fields[1]) == strconv.Itoa(of) && string(fields[0]) != "Z" && string(fields[0]) != "X" {
			list = append(list, pid)
		}
	}
	return list
}

// ReapChildren reaps all processes that are or become children of this one, and sends the status of
// one.
func ReapChildren(child int, ended chan<- syscall.WaitStatus) {
	for {
		var how syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &how, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return // no child is left
		case pid == child:
			ended <- how
		}
	}
}
