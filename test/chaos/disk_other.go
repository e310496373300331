//go:build !linux

package main

import (
	"os"
	"syscall"
)

func shutdown(*os.File) error { return errNoDisks }

func tied() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func apart() (*syscall.SysProcAttr, error) { return nil, errNoDisks }
