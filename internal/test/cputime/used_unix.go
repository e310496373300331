//go:build unix

package cputime

import (
	"syscall"
	"testing"
	"time"
)

// Used is what this process has used of the processors, user and system.
func Used(t testing.TB) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
