//go:build !linux

package main

import (
	"os"
	"syscall"
)

func shutdownFS(*os.File) error { return errNoDisks }

func dieTogether() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func ownMounts() (*syscall.SysProcAttr, error) { return nil, errNoDisks }
