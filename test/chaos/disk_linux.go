package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// What FS_IOC_SHUTDOWN is, and how: nothing more is written, not even the
// journal of the file system.
const (
	ioctlShutdown     = 0x8004587d
	shutdownNoJournal = 2
)

// shutdownFS stops the file system of an open file.
func shutdownFS(f *os.File) error {
	return os.NewSyscallError("FS_IOC_SHUTDOWN", unix.IoctlSetPointerInt(int(f.Fd()), ioctlShutdown, shutdownNoJournal))
}

// dieTogether starts a process at the head of a group, which dies with this one.
func dieTogether() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// ownMounts starts a process in a mount namespace of its own, which dies with this one.
func ownMounts() (*syscall.SysProcAttr, error) {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}, nil
}
