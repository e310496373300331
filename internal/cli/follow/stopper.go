package follow

import (
	"fmt"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// stopper stops a run step by step after the first Ctrl-C: at its boundary,
// then now, then it is given up.
type stopper struct {
	f       *Follower
	session *session.Session
	signal  <-chan struct{} // nil once it was taken
	timer   <-chan time.Time
	clock   *time.Timer
	steps   int
}

func newStopper(f *Follower, s *session.Session) *stopper {
	return &stopper{f: f, session: s, signal: f.sig.First}
}

func (st *stopper) escalate() error {
	st.signal = nil
	st.steps++
	why := "interrupted"
	if st.f.sig.Terminated.Load() {
		why = "terminated"
	}
	switch st.steps {
	case 1:
		farewell := st.f.console.ErrStyle.Yellow("exiting now, before the run has stopped: the second Ctrl-C " + st.secondInterrupt())
		st.f.sig.Farewell.Store(&farewell) // before the note, after which the second may come
		st.f.note(fmt.Sprintf("stopping at the next safe boundary, in %s at the latest; a second Ctrl-C %s", cancelWait, st.secondInterrupt()))
		st.clock = time.NewTimer(cancelWait)
		st.timer = st.clock.C
		_, err := st.session.Cancel(st.session.Context, client.CancelRequest{RunID: st.f.run, Why: why, By: request.UserName(), WaitMS: -1})
		return err
	case 2:
		st.f.note("stopping now")
		st.clock.Reset(endWait)
		_, err := st.session.Cancel(st.session.Context, client.CancelRequest{RunID: st.f.run, Why: why, By: request.UserName(), Now: true, WaitMS: -1})
		return err
	}
	return errStillRunning
}

// secondInterrupt says what a second Ctrl-C does.
func (st *stopper) secondInterrupt() string {
	if st.session.Node == nil { // another process runs it
		return "ends this command, and the node goes on stopping the run: " + st.session.Command("result --wait "+st.f.run)
	}
	return "kills the calls in progress and exits at once; " + st.session.Command("run --resume "+st.f.run) + " then completes the cancel"
}

func (st *stopper) close() {
	if st.clock != nil {
		st.clock.Stop()
	}
}
