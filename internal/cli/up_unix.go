//go:build unix && !linux

package cli

import (
	"os/exec"
	"syscall"
)

// detach gives a node a process group of its own, so that Ctrl-C reaches it
// once, by us.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
