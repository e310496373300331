package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// doorman is an admission without a node: it records which actors are woken.
type doorman struct {
	admission
	held  bool
	woken []string
}

func newDoorman(t *testing.T, most int) *doorman {
	d := &doorman{held: true}
	a := &d.admission
	a.most, a.mostQueued = most, 10
	a.live, a.starting, a.queued = map[string]presence{}, map[string]starting{}, map[string]bool{}
	a.begin = func(at mailbox.Address) { d.woken = append(d.woken, at.Run()) }
	a.press = func() {}
	a.holds = func(mailbox.Address) bool { return d.held }
	a.owned = func() func(mailbox.Address) bool { return func(mailbox.Address) bool { return true } }
	a.tell = func(queuedRun, int) {}
	a.closed = true // no timer: the test says when a moment has passed
	return d
}

func (d *doorman) opens(t *testing.T, run string, stamp int64) bool {
	t.Helper()
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "open", Kind: supervisor.Opened{}.Kind()}}})
	if err != nil {
		t.Fatal(err)
	}
	return d.admit(mailbox.Message{To: mailbox.At(run, mailbox.Super), At: stamp, Data: data})
}

func (d *doorman) wakes(t *testing.T, want ...string) {
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
	d := newDoorman(t, 1)
	if !d.opens(t, "a", 1) || d.opens(t, "b", 2) || d.opens(t, "c", 3) {
		t.Fatal("not the first run alone was admitted")
	}
	super := mailbox.At("a", mailbox.Super)
	d.alive(super, +1)
	d.held = false
	d.alive(super, -1)
	d.wakes(t)
	d.held = true
	d.goOn()
	d.wakes(t, "b")
}

// TestARunThatWasWokenInVainIsQueuedAgain: between the decision and the wake the node may
// lose the right to act.
func TestARunThatWasWokenInVainIsQueuedAgain(t *testing.T) {
	t.Parallel()
	d := newDoorman(t, 1)
	if !d.opens(t, "a", 1) || d.opens(t, "b", 2) {
		t.Fatal("not the first run alone was admitted")
	}
	s := d.starting["a"]
	s.since = time.Now().Add(-2 * startPatience)
	d.starting["a"] = s
	d.expire()
	d.goOn()
	d.wakes(t, "a")
	d.alive(mailbox.At("a", mailbox.Super), +1)
	d.expire()
	d.goOn()
	d.wakes(t)
}

// TestAShardThatComesBackHasItsRunsQueued: the request is still the newest entry, though
// the run was admitted here before.
func TestAShardThatComesBackHasItsRunsQueued(t *testing.T) {
	t.Parallel()
	d := newDoorman(t, 1)
	if !d.opens(t, "a", 1) {
		t.Fatal("the first run was not admitted")
	}
	d.queueAgain(queuedRun{mailbox.At("a", mailbox.Super), 1})
	d.goOn()
	d.wakes(t, "a")
}

// TestARunThatBeganElsewhereLeavesTheQueue: a letter shows that its supervisor was active.
func TestARunThatBeganElsewhereLeavesTheQueue(t *testing.T) {
	t.Parallel()
	d := newDoorman(t, 1)
	if !d.opens(t, "a", 1) || d.opens(t, "b", 2) {
		t.Fatal("not the first run alone was admitted")
	}
	root := mailbox.At("b", "root")
	if d.admit(mailbox.Message{To: root}) {
		t.Error("an agent of a queued run was activated by a wake")
	}
	letter, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: mailbox.At("b", mailbox.Super), Items: []mailbox.Item{{N: 1, Kind: "submitted"}}})
	if err != nil {
		t.Fatal(err)
	}
	if !d.admit(mailbox.Message{To: root, Data: letter}) || len(d.queue) != 0 {
		t.Errorf("a run that has begun is queued: %v", d.queue)
	}
}

// TestARunOfALostShardIsNotBegunHere: its next owner queues it.
func TestARunOfALostShardIsNotBegunHere(t *testing.T) {
	t.Parallel()
	d := newDoorman(t, 1)
	if !d.opens(t, "a", 1) || d.opens(t, "b", 2) || d.opens(t, "c", 3) {
		t.Fatal("not the first run alone was admitted")
	}
	d.owned = func() func(mailbox.Address) bool { return func(at mailbox.Address) bool { return at.Run() != "b" } }
	d.disown()
	super := mailbox.At("a", mailbox.Super)
	d.alive(super, +1)
	d.alive(super, -1)
	d.wakes(t, "c")
}
