package embedded

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/bus/statedir"
)

const (
	// DiskCheckInterval is how often the free space of the state directory is checked.
	DiskCheckInterval = time.Second
	// DiskLowBytes is the number of free bytes below which a disk is low, unless a tenth of what was free at the
	// start is less: then that counts. New runs are refused, so that live runs can end.
	DiskLowBytes = 256 << 20
	// diskProbePause is the pause after a failed probe.
	diskProbePause = 250 * time.Millisecond
	// The pause before a restart grows if the server fails again soon after the previous one.
	restartPauseMin = 100 * time.Millisecond
	restartPauseMax = 10 * time.Second
	restartCalm     = 30 * time.Second // without a failure, the pause returns to the minimum
)

// storeFailures are the log lines by which nats-server says that it has stopped storing:
// publishers receive no error, and the state persists until the server is restarted.
var storeFailures = []string{"ritical write error", "disabling JetStream", "will be DISABLED"}

// isStoreFailure reports whether a line of the server's log is one of storeFailures.
func isStoreFailure(line string) bool {
	for _, s := range storeFailures {
		if strings.Contains(line, s) {
			return true
		}
	}
	return false
}

// lowDiskThreshold is the number of free bytes below which the disk of a directory is low.
func lowDiskThreshold(dir string) (int64, error) {
	free, err := statedir.DiskFree(dir)
	if err != nil {
		return 0, err
	}
	return min(DiskLowBytes, free/10), nil
}

// diskWatch watches the disk and the store of an embedded server.
type diskWatch struct {
	failures    chan error // from the server's log; one is enough
	quit        chan struct{}
	ended       chan struct{}
	low         bool
	pause       time.Duration // before the next restart
	lastRestart time.Time     // the newest
}

func newDiskWatch() *diskWatch {
	return &diskWatch{failures: make(chan error, 1), quit: make(chan struct{}), ended: make(chan struct{}), pause: restartPauseMin}
}

// reportFailure queues a report of the server about its store. It never blocks: the caller holds
// the server's locks.
func (w *diskWatch) reportFailure(err error) {
	select {
	case w.failures <- err:
	default:
	}
}

// pauseFor waits, unless the watch ends.
func (w *diskWatch) pauseFor(d time.Duration) bool {
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

// watchDisk checks the disk and the store until Close.
func (e *Server) watchDisk() {
	defer close(e.disk.ended)
	tick := time.NewTicker(DiskCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-e.disk.quit:
			return
		case err := <-e.disk.failures:
			if !e.recoverStore(err) {
				return
			}
		case <-tick.C:
			e.checkDisk()
		}
	}
}

// checkDisk reports once when the disk becomes low, and when it no longer is, and detects a
// store that is off although the server's log did not say why.
func (e *Server) checkDisk() {
	if !e.currentServer().JetStreamEnabled() {
		e.disk.reportFailure(errors.New("the server turned its store off"))
		return
	}
	free, err := statedir.DiskFree(e.cfg.StateDir)
	if err != nil {
		return // the next look, or a failed write, says more
	}
	low := free < e.lowDiskBytes
	if !low && e.disk.low && free < e.lowDiskBytes+e.lowDiskBytes/4 {
		return // not yet: it would be reported repeatedly
	}
	if low == e.disk.low {
		return
	}
	e.disk.low = low
	e.reportDisk(e.describeDisk(free))
}

// describeDisk describes a disk that is writable, but may be low.
func (e *Server) describeDisk(free int64) statedir.DiskState {
	d := statedir.DiskState{Path: e.cfg.StateDir, Free: free, Low: e.disk.low}
	if d.Low {
		d.Why = fmt.Sprintf("the disk of %s is nearly full: %s are free, new runs need %s", d.Path, statedir.FormatSize(free), statedir.FormatSize(e.lowDiskBytes))
		d.Remedy = "free some space on the disk of " + d.Path
	}
	return d
}

func (e *Server) reportDisk(d statedir.DiskState) {
	if e.cfg.OnDiskChange != nil {
		e.cfg.OnDiskChange(d)
	}
}

// recoverStore restarts the server as soon as its disk is writable. It returns false if the watch
// ends first.
func (e *Server) recoverStore(why error) bool {
	w, since := e.disk, time.Now()
	if since.Sub(w.lastRestart) > restartCalm {
		w.pause = restartPauseMin
	}
	e.reportDisk(statedir.FailedDisk(e.cfg.StateDir, since, why))
	for pause := w.pause; ; pause = max(diskProbePause, w.pause) {
		if !w.pauseFor(pause) {
			return false
		}
		err := statedir.ProbeDisk(e.cfg.StateDir)
		if err == nil {
			w.pause = min(2*w.pause, restartPauseMax)
			err = e.restartNATS()
		}
		if err == nil {
			break
		}
		e.cfg.Logger.Debug("the store cannot be opened again yet", "path", e.cfg.StateDir, "error", err)
	}
	w.lastRestart = time.Now()
	free, err := statedir.DiskFree(e.cfg.StateDir)
	if err != nil {
		free = -1
	}
	w.low = free >= 0 && free < e.lowDiskBytes
	e.reportDisk(e.describeDisk(free))
	return true
}

// restartNATS replaces the server by a new one on the same store, with the same ports and
// credentials. Connections reconnect by themselves.
func (e *Server) restartNATS() error {
	shutDown(e.currentServer())
	select {
	case <-e.disk.failures: //nolint:errcheck // the old server's: the new one reports its own
	default:
	}
	return e.startNATS()
}
