package keeper

import (
	"os"
	"syscall"
	"time"
)

// Bounds of the time between two searches for remaining processes. It grows while the searches find no process that was
// not killed before.
const (
	sweepPause    = 2 * time.Millisecond
	sweepPauseMax = 50 * time.Millisecond
)

// EndChildren kills all descendants of this process, which must be a subreaper that reaps (see ReapChildren): a
// descendant that loses its parent becomes a child of this process, whatever its group or session. So once this
// process has no child, it has no descendant. The kernel decides that, not a list: while a list is read, a process
// forks and ends, and its child is not listed.
//
// It returns when the kernel has ended the last child, however long that takes: a killed process may have much memory to
// release, or wait for a device. The process that waits for this one ends the wait if its context ends; nothing does once
// that process is gone.
func EndChildren() {
	killed, pause := map[int]bool{}, sweepPause
	for hasChildren() {
		known := killed
		killed = map[int]bool{}
		found := false
		for _, pid := range liveChildren() {
			if syscall.Kill(pid, syscall.SIGKILL) == nil { // one that is gone already is what we want
				killed[pid], found = true, found || !known[pid]
			}
		}
		if found { // search again at once: a process that forks and ends is faster than any pause
			pause = sweepPause
			continue
		}
		<-time.After(pause)
		pause = min(2*pause, sweepPauseMax)
	}
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
	const threads = "/proc/self/task"
	names, err := os.ReadDir(threads)
	if err != nil {
		return nil, false
	}
	for _, n := range names {
		text, err := os.ReadFile(threads + "/" + n.Name() + "/children")
		if err != nil {
			continue // a thread that has ended, or a kernel without the lists
		}
		ok = true
		for rest := string(text); ; {
			pid, more, found := nextNumber(rest)
			if !found {
				break
			}
			list, rest = append(list, int(pid)), more
		}
	}
	return list, ok
}

// scannedChildren reads the state of every process of the machine.
func scannedChildren(of int) []int {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var list []int
	for _, n := range names {
		pid, ok := parseNumber(n.Name())
		if !ok {
			continue
		}
		stat, err := os.ReadFile("/proc/" + n.Name() + "/stat")
		if err != nil {
			continue
		}
		if state, parent := stateAndParent(string(stat)); parent == of && state != 'Z' && state != 'X' {
			list = append(list, pid)
		}
	}
	return list
}

// stateAndParent reads the state of a process and its parent from the text "pid (name) state ppid …". A name may contain
// anything, including parentheses.
func stateAndParent(stat string) (state byte, parent int) {
	end := len(stat) - 1
	for end >= 0 && stat[end] != ')' {
		end--
	}
	const between = len(") S ") // from the end of the name to the parent
	if end < 0 || len(stat) < end+between {
		return 0, 0
	}
	n, _, ok := nextNumber(stat[end+between:])
	if !ok {
		return 0, 0
	}
	return stat[end+2], int(n)
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
