package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// sweepPause is between two looks at who is left.
const sweepPause = 2 * time.Millisecond

// sweep kills all that the command has started, where no namespace does: what
// loses its parent becomes a child of the helper, wherever it went, so killing
// children until there are none leaves nothing. Whoever waits kills the helper
// if it takes too long.
func sweep() {
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
