//go:build !unix

package main

import "os/exec"

// detach does nothing: this system has no process groups.
func detach(*exec.Cmd) {}
