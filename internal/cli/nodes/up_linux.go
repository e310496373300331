package nodes

import (
	"os/exec"
	"syscall"
)

// detachProcess gives a node a process group of its own, so that Ctrl-C reaches it
// once, by us; and lets it stop when this process is killed. The caller stays
// on its thread until the node has ended: the kernel watches that thread.
func detachProcess(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
