package statedir

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	// diskProbeBytes is how many bytes must be written and synced successfully before a server
	// whose store has failed is restarted.
	diskProbeBytes = 1 << 20
)

// ErrDisk says that the directory of the embedded server cannot be written.
var ErrDisk = errors.New("statedir: the state directory cannot be written")

// DiskState is the state of the disk of a state directory.
type DiskState struct {
	// Path is the directory, Free how many bytes may still be written; -1: unknown.
	Path string
	Free int64
	// Failed is the time since which writes fail; zero: they do not. The server's store is off
	// until a probe of the disk succeeds and the server has been restarted.
	Failed time.Time
	// Why explains the state to a user, Remedy says what to do; both are "" while writes
	// succeed.
	Why, Remedy string
	// Low says that there is little room left. Live runs continue, new ones should not begin.
	Low bool
}

// diskErrors lists the errors of a disk, and what to do about them.
var diskErrors = []struct {
	err         error
	why, remedy string
}{
	{syscall.ENOSPC, "the disk of %s is full", "free some space on the disk of %s"},
	{syscall.EDQUOT, "the quota of the disk of %s is used up", "free some space on the disk of %s, or raise the quota"},
	{syscall.EROFS, "the disk of %s is mounted read-only", "mount the disk of %s writable again"},
	{syscall.EFBIG, "the disk of %s takes no larger files", "raise the limit on the size of files (ulimit -f) that holds for %s"},
	{syscall.EIO, "the disk of %s returns input/output errors", "check the disk of %s: the system's log has the details"},
	{syscall.EACCES, "%s may not be written by this user", "make %s writable again"},
	{syscall.EPERM, "%s may not be written by this user", "make %s writable again"},
}

// explainDisk turns a disk error, or the server's log line about one, into the sentences of a
// DiskState.
func explainDisk(dir string, err error) (why, remedy string) {
	for _, t := range diskErrors {
		if errors.Is(err, t.err) || strings.Contains(err.Error(), t.err.Error()) {
			return fmt.Sprintf(t.why, dir), fmt.Sprintf(t.remedy, dir)
		}
	}
	return fmt.Sprintf("%s cannot be written: %v", dir, err), "check the disk of " + dir
}

// FailedDisk describes a failed disk.
func FailedDisk(dir string, since time.Time, err error) DiskState {
	d := DiskState{Path: dir, Failed: since, Free: -1}
	d.Why, d.Remedy = explainDisk(dir, err)
	if free, err := diskFree(dir); err == nil {
		d.Free = free
		d.Why += fmt.Sprintf(" (%s free)", FormatSize(free))
	}
	return d
}

// FormatSize formats a number of bytes for users.
func FormatSize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// ProbeDisk writes a file into a directory, syncs it and removes it. The error wraps ErrDisk
// and says what failed.
func ProbeDisk(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err == nil {
		_, err = f.Write(make([]byte, diskProbeBytes))
		err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		why, _ := explainDisk(dir, err)
		return fmt.Errorf("%w: %s: %w", ErrDisk, why, err)
	}
	return nil
}

// DiskRemedy is what to do about an error of ProbeDisk.
func DiskRemedy(dir string, err error) string {
	_, remedy := explainDisk(dir, err)
	return remedy
}
