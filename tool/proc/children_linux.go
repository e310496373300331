package proc

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// sweepPause is between two looks at who is left.
const sweepPause = 2 * time.Millisecond

// EndChildren kills all that this process has started, for a process that is a subreaper: what
// loses its parent becomes its child, wherever it went, so killing
// children until there are none leaves nothing. The process that waits for this one kills it
// if it takes too long.
func EndChildren() {
	tick := time.NewTicker(sweepPause)
	defer tick.Stop()
	for {
		left := children(os.Getpid())
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // who is gone already is what we want
		}
		<-tick.C
	}
}

// children are the live children of a process.
func children(of int) []int {
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
