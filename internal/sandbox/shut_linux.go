package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/internal/clip"
)

// confinement confines the helper. A feature that the system lacks is found and reported;
// a feature that the system has but that fails is an error: then the command does not begin.
type confinement struct {
	task     helperTask
	report   Report
	home     string // where the command finds its temporary directory
	readOnly bool   // all else is mounted so
	dir      int    // the directory, opened, and this process is in it
	exact    []int  // task.Exact, opened
}

func (s *confinement) noteFinding(what string, held bool, format string, args ...any) {
	s.report = append(s.report, Finding{what, held, fmt.Sprintf(format, args...)})
}

// confineProcess takes the steps that affect the whole process.
func (s *confinement) confineProcess() error {
	s.home = s.task.Temp
	var err error
	if s.dir, err = s.task.Dir.openPlace(); err == nil {
		err = unix.Fchdir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	for _, p := range s.task.Exact {
		fd, err := p.openPlace()
		if err != nil {
			return err
		}
		s.exact = append(s.exact, fd)
	}
	if s.task.Spaces {
		if err := s.mountReadOnly(); err != nil {
			return fmt.Errorf("%w: %w", errSpaces, err)
		}
		if err := s.hidePaths(); err != nil {
			return err
		}
		s.protectGit() // creating a mount counts as a namespace, and after this no further ones are possible
		s.setUpNamespace()
		s.noteFinding(Network, true, "a network namespace with nothing but a loopback of its own")
		s.noteFinding(Leftovers, true, "a process namespace that ends with the command")
		s.noteFinding(Isolation, true, "process, user and IPC namespaces")
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil { // no process can read the helper's memory
		return fmt.Errorf("dumpable: %w", err)
	}
	if err := s.setLimits(); err != nil {
		return err
	}
	// Every descriptor that this process was ever handed ends at the command.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return s.closeEach(err)
	}
	return nil
}

// confineThread takes the steps that affect this thread, and the processes that it starts.
func (s *confinement) confineThread() error {
	if err := s.dropPrivileges(); err != nil {
		return err
	}
	// Rights are those of this thread, and so is its keyring: the command gets an empty one.
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("keyring: %w", err)
	}
	abi := 0
	if s.task.Landlock {
		abi = landlockABI()
	}
	if abi > 0 {
		if err := s.restrictFiles(abi); err != nil {
			return err
		}
		how := "Landlock %d, and all else is mounted read-only"
		if !s.readOnly {
			how = "Landlock %d; modes and times of other files can be changed"
		}
		s.noteFinding(Files, true, how, abi)
	} else {
		how := "no Landlock here: what a person's account can read can be read"
		if !s.readOnly {
			how = "no Landlock here: what a person's account can read or write can be read or written"
		}
		s.noteFinding(Files, false, "%s", how)
	}
	if !s.task.Spaces {
		s.apartOnly(abi)
	}
	// also sockets of the network: a process that the command reaches may reach further
	if err := denySockets(s.task.Spaces); err != nil {
		for i, f := range s.report {
			if f.What == Network || f.What == Files {
				s.report[i] = Finding{f.What, false, "sockets of the machine can be connected to: " + err.Error()}
			}
		}
	}
	return nil
}

// closeEach is for kernels that cannot close a range.
func (s *confinement) closeEach(cause error) error {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("descriptors: %w: %w", cause, err)
	}
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// apartOnly reports what is enforced without namespaces.
func (s *confinement) apartOnly(abi int) {
	why := clip.FirstLine(s.task.Why)
	if abi > 0 {
		s.noteFinding(Network, true, "a filter refuses every socket of the network (no namespaces: %s)", why)
	} else { // Landlock also keeps it from tracing a process that has a network
		s.noteFinding(Network, false, "no namespaces: %s; a filter refuses sockets, and other processes can be traced", why)
	}
	s.protectGit()
	if len(s.task.Hide) > 0 {
		s.noteFinding(Trust, false, "directories that the node trusts can be read and written: no namespaces")
	}
	s.noteFinding(Leftovers, true, "a helper finds and kills all that was started, unless the command ends it first")
	s.noteFinding(Isolation, false, "no namespaces: other processes can be seen")
	if abi >= landlockScope {
		s.report[len(s.report)-1].How += ", though not signaled or traced"
	}
}

// commandEnv returns the environment of the command: its directories may have
// other names inside the sandbox.
func (s *confinement) commandEnv() []string {
	env := make([]string, 0, len(s.task.Env))
	for _, v := range s.task.Env {
		switch v {
		case "HOME=" + s.task.Temp, "TMPDIR=" + s.task.Temp:
			name, _, _ := strings.Cut(v, "=")
			v = name + "=" + s.home
		}
		env = append(env, v)
	}
	return env
}
