//go:build unix && !linux

package nodes

import (
	"os/exec"
	"syscall"
)

// detachProcess gives a node a process group of its own, so that Ctrl-C reaches it
// once, by us.
func detachProcess(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
