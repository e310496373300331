package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// admissionRecorder is an admission without a node: it records which actors are woken.
type admissionRecorder struct {
	runAdmission
	held  bool
	woken []string
}

func newAdmissionRecorder(t *testing.T, most int) *admissionRecorder {
	d := &admissionRecorder{held: true}
	a := &d.runAdmission
	a.liveMax, a.queuedMax = most, 10
	a.live, a.starting, a.queued = map[string]activationCount{}, map[string]startingRun{}, map[string]bool{}
	a.wakeSupervisor = func(at mailbox.Address) { d.woken = append(d.woken, at.Run()) }
	a.passivateWaiting = func() {}
	a.isHeld = func(mailbox.Address) bool { return d.held }
	a.ownedFilter = func() func(mailbox.Address) bool { return func(mailbox.Address) bool { return true } }
	a.reportQueued = func(queuedRun, int) {}
	a.closed = true // no timer: the test says when a moment has passed
	return d
}

func (d *admissionRecorder) openRun(t *testing.T, run string, stamp int64) bool {
	t.Helper()
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "open", Kind: supervisor.Opened{}.Kind()}}})
	if err != nil {
		t.Fatal(err)
	}
	return d.admitEntry(mailbox.Message{To: mailbox.At(run, mailbox.Super), At: stamp, Data: data})
}

func (d *admissionRecorder) expectWoken(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(d.woken, want) {
		t.Errorf("woken were %v, and not %v", d.woken, want)
	}
	d.woken = nil
}

// TestAQueuedRunOutlastsALeaseInDoubt: a node that cannot be reached for a moment may not
// act, and no other node takes its runs up afterwards: they stay in its queue.
//
//behaviour:shows G5
func TestAQueuedRunOutlastsALeaseInDoubt(t *testing.T) {
	t.Parallel()
	d := newAdmissionRecorder(t, 1)
	if !d.openRun(t, "a", 1) || d.openRun(t, "b", 2) || d.openRun(t, "c", 3) {
		t.Fatal("not the first run alone was admitted")
	}
	super := mailbox.At("a", mailbox.Super)
	d.countActivation(super, +1)
	d.held = false
	d.countActivation(super, -1)
	d.expectWoken(t)
	d.held = true
	d.beginQueued()
	d.expectWoken(t, "b")
}

// TestARunThatWasWokenInVainIsQueuedAgain: between the decision and the wake the node may
// lose the right to act.
func TestARunThatWasWokenInVainIsQueuedAgain(t *testing.T) {
	t.Parallel()
	d := newAdmissionRecorder(t, 1)
	if !d.openRun(t, "a", 1) || d.openRun(t, "b", 2) {
		t.Fatal("not the first run alone was admitted")
	}
	s := d.starting["a"]
	s.since = time.Now().Add(-2 * startTimeout)
	d.starting["a"] = s
	d.expireStarting()
	d.beginQueued()
	d.expectWoken(t, "a")
	d.countActivation(mailbox.At("a", mailbox.Super), +1)
	d.expireStarting()
	d.beginQueued()
	d.expectWoken(t)
}

// TestRegainedShardQueuesItsRunsAgain: the request is still the newest entry, though
// the run was admitted here before.
func TestRegainedShardQueuesItsRunsAgain(t *testing.T) {
	t.Parallel()
	d := newAdmissionRecorder(t, 1)
	if !d.openRun(t, "a", 1) {
		t.Fatal("the first run was not admitted")
	}
	d.queueAgain(queuedRun{mailbox.At("a", mailbox.Super), mailbox.Stamp{At: 1, Place: 1}})
	d.beginQueued()
	d.expectWoken(t, "a")
}

// TestRunStartedOnAnotherNodeLeavesTheQueue: a message shows that its supervisor was active.
func TestRunStartedOnAnotherNodeLeavesTheQueue(t *testing.T) {
	t.Parallel()
	d := newAdmissionRecorder(t, 1)
	if !d.openRun(t, "a", 1) || d.openRun(t, "b", 2) {
		t.Fatal("not the first run alone was admitted")
	}
	root := mailbox.At("b", "root")
	if d.admitEntry(mailbox.Message{To: root}) {
		t.Error("an agent of a queued run was activated by a wake")
	}
	letter, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: mailbox.At("b", mailbox.Super), Items: []mailbox.Item{{N: 1, Kind: "submitted"}}})
	if err != nil {
		t.Fatal(err)
	}
	if !d.admitEntry(mailbox.Message{To: root, Data: letter}) || len(d.queue) != 0 {
		t.Errorf("a run that has begun is queued: %v", d.queue)
	}
}

// TestRunOfALostShardIsNotStarted: its next owner queues it.
func TestRunOfALostShardIsNotStarted(t *testing.T) {
	t.Parallel()
	d := newAdmissionRecorder(t, 1)
	if !d.openRun(t, "a", 1) || d.openRun(t, "b", 2) || d.openRun(t, "c", 3) {
		t.Fatal("not the first run alone was admitted")
	}
	d.ownedFilter = func() func(mailbox.Address) bool { return func(at mailbox.Address) bool { return at.Run() != "b" } }
	d.dropUnowned()
	super := mailbox.At("a", mailbox.Super)
	d.countActivation(super, +1)
	d.countActivation(super, -1)
	d.expectWoken(t, "c")
}

// TestQueueOfOneMillisecond: runs that were opened in the same millisecond keep the order of the
// store.
func TestQueueOfOneMillisecond(t *testing.T) {
	t.Parallel()
	z := queuedRun{mailbox.At("z", mailbox.Super), mailbox.Stamp{At: 7, Place: 1}}
	a := queuedRun{mailbox.At("a", mailbox.Super), mailbox.Stamp{At: 7, Place: 2}}
	earlier := queuedRun{mailbox.At("m", mailbox.Super), mailbox.Stamp{At: 6, Place: 3}}
	// Places in another stream do not compare with these: the rest of the stamp decides.
	later := queuedRun{mailbox.At("b", mailbox.Super), mailbox.Stamp{At: 7, Nanos: 5, Place: 1}}
	queue := []queuedRun{a, later, z, earlier}
	slices.SortFunc(queue, queuedRun.compareOrder)
	if want := []queuedRun{earlier, z, a, later}; !slices.Equal(queue, want) {
		t.Errorf("%v, want %v", queue, want)
	}
}
