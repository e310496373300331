package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// exitTold is the exit code of a scenario that was interrupted.
const exitTold = 130

// cleanOnSignal cleans up when the program gets SIGINT or SIGTERM: no process, no mount and,
// unless it is kept, no directory stays. The directory is in the command line of every process
// of a scenario. If this program is killed, its processes end with it (dieTogether), but the
// directory stays.
func cleanOnSignal(dir string, keep bool) (over func()) {
	told, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-ended:
		case s := <-told:
			fmt.Printf("%v: the scenario ends here\n", s)
			err := errors.Join(endProcesses(dir), unmountAll(dir))
			if !keep {
				err = errors.Join(err, os.RemoveAll(dir))
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "chaos:", err)
			}
			os.Exit(exitTold)
		}
	}()
	return func() {
		signal.Stop(told)
		close(ended)
	}
}

// endProcesses kills the processes of a directory, and those that they started just now.
func endProcesses(dir string) error {
	for until := time.Now().Add(endPatience); ; {
		list := listProcesses(dir)
		if len(list) == 0 {
			return nil
		}
		for _, p := range list {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may have ended just now
		}
		if time.Now().After(until) {
			return fmt.Errorf("processes are left: %v", list)
		}
		time.Sleep(poll)
	}
}

// endPatience is how long the processes of a scenario may take to end.
const endPatience = 10 * time.Second

// process is a running process.
type process struct {
	pid  int
	line string
}

func (p process) String() string { return fmt.Sprint(p.pid, " ", p.line) }

// listProcesses lists the other processes whose command line names a directory. Those that have
// ended have no command line.
func listProcesses(dir string) (list []process) {
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil // the pattern is a constant
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		pid, number := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && number == nil && strings.Contains(string(data), dir) && pid != os.Getpid() {
			list = append(list, process{pid, strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " "))})
		}
	}
	return list
}

// unmountAll unmounts every file system below a directory.
func unmountAll(dir string) error {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil // nor could anything be mounted
	}
	var errs []error
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+string(filepath.Separator)) {
			errs = append(errs, runCommand("umount", "-l", fields[1]))
		}
	}
	return errors.Join(errs...)
}

// listLeftovers lists the processes that a scenario leaves, without its servers.
func listLeftovers(dir string) []process {
	return slices.DeleteFunc(listProcesses(dir), func(p process) bool { return strings.Contains(p.line, serverBinary(dir)) })
}
