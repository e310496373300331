package bus

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	// DiskEvery is how often the free space of the state directory is looked at.
	DiskEvery = time.Second
	// DiskLow is how many free bytes make a disk low, or a tenth of what was free at the
	// start: new runs are refused, so that those that are live can end.
	DiskLow = 256 << 20
	// diskProbe is how many bytes must fit, and be synced, before a server whose store
	// has failed is started again.
	diskProbe = 1 << 20
	// diskProbePause is how long the next probe waits after a failed one.
	diskProbePause = 250 * time.Millisecond
	// A server that fails again soon after its restart waits longer before the next one.
	restartPauseMin = 100 * time.Millisecond
	restartPauseMax = 10 * time.Second
	restartCalm     = 30 * time.Second // without a failure: the pause is the least again
)

// ErrDisk: the directory of the embedded server cannot be written.
var ErrDisk = errors.New("bus: the state directory cannot be written")

// Disk is how the disk of a state directory stands.
type Disk struct {
	// Path is the directory, Free how many bytes may still be written; -1: unknown.
	Path string
	Free int64
	// Failed: writes fail since then; zero: they do not. The server's store is off
	// until the disk takes a probe, and the server was started again.
	Failed time.Time
	// Why is the sentence for people, Remedy what to do; "" while all is well.
	Why, Remedy string
	// Low: there is little room left. Runs go on, new ones should not begin.
	Low bool
}

// diskTrouble are the errors of a disk, and what to do about them.
var diskTrouble = []struct {
	err         error
	why, remedy string
}{
	{syscall.ENOSPC, "the disk of %s is full", "free some space on the disk of %s"},
	{syscall.EDQUOT, "the quota of the disk of %s is used up", "free some space on the disk of %s, or raise the quota"},
	{syscall.EROFS, "the disk of %s is mounted read-only", "mount the disk of %s writable again"},
	{syscall.EFBIG, "the disk of %s takes no larger files", "raise the limit on the size of files (ulimit -f) that holds for %s"},
	{syscall.EIO, "the disk of %s returns input/output errors", "look at the disk of %s: the system's log says more"},
	{syscall.EACCES, "%s may not be written by this user", "make %s writable again"},
	{syscall.EPERM, "%s may not be written by this user", "make %s writable again"},
}

// explainDisk turns an error of the disk, or the server's line about one, into the
// sentences of a Disk.
func explainDisk(dir string, err error) (why, remedy string) {
	for _, t := range diskTrouble {
		if errors.Is(err, t.err) || strings.Contains(err.Error(), t.err.Error()) {
			return fmt.Sprintf(t.why, dir), fmt.Sprintf(t.remedy, dir)
		}
	}
	return fmt.Sprintf("%s cannot be written: %v", dir, err), "look at the disk of " + dir
}

// diskOf says how a failed disk stands.
func diskOf(dir string, since time.Time, err error) Disk {
	d := Disk{Path: dir, Failed: since, Free: -1}
	d.Why, d.Remedy = explainDisk(dir, err)
	if free, err := diskFree(dir); err == nil {
		d.Free = free
		d.Why += fmt.Sprintf(" (%s free)", Size(free))
	}
	return d
}

// Size is a number of bytes for people.
func Size(n int64) string {
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

// ProbeDisk writes a file into a directory, syncs it and removes it. The error wraps
// ErrDisk and says what is wrong.
func ProbeDisk(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err == nil {
		_, err = f.Write(make([]byte, diskProbe))
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

// storeFailures are the lines in which nats-server says that it stores no more: it
// tells nobody who publishes, and stays so until it is started again.
var storeFailures = []string{"ritical write error", "disabling JetStream", "will be DISABLED"}

// storeFailed reports whether a line of the server's log is one of them.
func storeFailed(line string) bool {
	for _, s := range storeFailures {
		if strings.Contains(line, s) {
			return true
		}
	}
	return false
}

// lowAt is how many free bytes make the disk of a directory low.
func lowAt(dir string) (int64, error) {
	free, err := diskFree(dir)
	if err != nil {
		return 0, fmt.Errorf("free disk space of %s: %w", dir, err)
	}
	return min(DiskLow, free/10), nil
}

// diskWatch is the watch over the store of an embedded server.
type diskWatch struct {
	failures chan error // by the server's log; one is enough
	quit     chan struct{}
	ended    chan struct{}
	low      bool
	pause    time.Duration // before the next restart
	restarts time.Time     // the newest
}

func newDiskWatch() *diskWatch {
	return &diskWatch{failures: make(chan error, 1), quit: make(chan struct{}), ended: make(chan struct{}), pause: restartPauseMin}
}

// suspect takes what the server says of its store. It never blocks: the server's
// locks are held.
func (w *diskWatch) suspect(err error) {
	select {
	case w.failures <- err:
	default:
	}
}

// wait waits, unless the watch ends.
func (w *diskWatch) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.quit:
		return false
	}
}

// close ends the watch, and waits for it.
func (w *diskWatch) close() {
	close(w.quit)
	<-w.ended
}

// watchDisk looks at the disk and the store until Close.
func (e *Embedded) watchDisk() {
	defer close(e.disk.ended)
	tick := time.NewTicker(DiskEvery)
	defer tick.Stop()
	for {
		select {
		case <-e.disk.quit:
			return
		case err := <-e.disk.failures:
			if !e.mend(err) {
				return
			}
		case <-tick.C:
			e.lookAtDisk()
		}
	}
}

// lookAtDisk tells once when the disk becomes low, and when it no longer is, and
// finds a store that is off though the server's log did not say why.
func (e *Embedded) lookAtDisk() {
	if !e.running().JetStreamEnabled() {
		e.disk.suspect(errors.New("the server turned its store off"))
		return
	}
	free, err := diskFree(e.cfg.StateDir)
	if err != nil {
		return // the next look, or a failed write, says more
	}
	low := free < e.lowAt
	if !low && e.disk.low && free < e.lowAt+e.lowAt/4 {
		return // not yet: it would be told again and again
	}
	if low == e.disk.low {
		return
	}
	e.disk.low = low
	e.tellDisk(e.lowDisk(free))
}

// lowDisk is how a disk stands that can be written.
func (e *Embedded) lowDisk(free int64) Disk {
	d := Disk{Path: e.cfg.StateDir, Free: free, Low: e.disk.low}
	if d.Low {
		d.Why = fmt.Sprintf("the disk of %s is nearly full: %s are free, new runs need %s", d.Path, Size(free), Size(e.lowAt))
		d.Remedy = "free some space on the disk of " + d.Path
	}
	return d
}

func (e *Embedded) tellDisk(d Disk) {
	if e.cfg.Disk != nil {
		e.cfg.Disk(d)
	}
}

// mend starts the server again as soon as its disk can be written. It is false when
// the watch ends first.
func (e *Embedded) mend(why error) bool {
	w, since := e.disk, time.Now()
	if since.Sub(w.restarts) > restartCalm {
		w.pause = restartPauseMin
	}
	e.tellDisk(diskOf(e.cfg.StateDir, since, why))
	for pause := w.pause; ; pause = max(diskProbePause, w.pause) {
		if !w.wait(pause) {
			return false
		}
		err := ProbeDisk(e.cfg.StateDir)
		if err == nil {
			w.pause = min(2*w.pause, restartPauseMax)
			err = e.restart()
		}
		if err == nil {
			break
		}
		e.cfg.Logger.Debug("the store cannot be opened again yet", "path", e.cfg.StateDir, "error", err)
	}
	w.restarts = time.Now()
	free, err := diskFree(e.cfg.StateDir)
	if err != nil {
		free = -1
	}
	w.low = free >= 0 && free < e.lowAt
	e.tellDisk(e.lowDisk(free))
	return true
}

// restart replaces the server by a new one on the same store, with the same
// ports and credentials. Connections come back by themselves.
func (e *Embedded) restart() error {
	old := e.running()
	old.Shutdown()
	old.WaitForShutdown()
	select {
	case <-e.disk.failures: // the old server's
	default:
	}
	return e.serve()
}
