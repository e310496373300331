//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) {
	attr := syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	attr.Setpgid = !attr.Setsid // the leader of a session leads a group already
	cmd.SysProcAttr = &attr
}

// The group may be gone already, so errors are ignored.

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
