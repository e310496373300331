//go:build !linux

package main

import (
	"os"
	"syscall"
)

func shutdown(*os.File) error { return errNoDisks }

func apart() (*syscall.SysProcAttr, error) { return nil, errNoDisks }
