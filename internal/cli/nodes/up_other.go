//go:build !unix

package nodes

import "os/exec"

// detachProcess does nothing: this system has no process groups.
func detachProcess(*exec.Cmd) {}
