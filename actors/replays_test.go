package actors

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// The queue lets so many shells start, then one for each that has replayed its log: supervisors first, then actors with a
// new entry, each class in order. An address waits once, and counts in its best class.
func TestReplayQueueStartsSupervisorsAndNewEntriesFirst(t *testing.T) {
	q := newReplayQueue(2)
	for i := range 2 {
		if !q.enter(mailbox.At("r", fmt.Sprint("early-", i)), classWake) {
			t.Fatalf("shell %d waits", i)
		}
		q.begin(fmt.Sprint(i), mailbox.At("r", fmt.Sprint("early-", i)), time.UnixMilli(1000))
	}
	for _, agent := range []string{"a", "b", "a", "c", mailbox.Super} {
		at := mailbox.At("r", agent)
		if q.enter(at, classOf(at, false)) {
			t.Fatalf("%s starts although 2 replay", at)
		}
	}
	for _, hasEntry := range []bool{true, true, false} {
		if at := mailbox.At("r", "c"); q.enter(at, classOf(at, hasEntry)) {
			t.Fatal("an entry starts a shell although 2 replay")
		}
	}
	if at, ok := q.next(); ok {
		t.Fatalf("%s starts although 2 replay", at)
	}
	q.end("0")
	q.end("1")
	var order []string
	for at, ok := q.next(); ok; at, ok = q.next() {
		order = append(order, at.Agent())
	}
	if want := []string{mailbox.Super, "c", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	if !q.enter(mailbox.At("r", "a"), classWake) || len(q.waiting) != 0 {
		t.Errorf("a shell waits although none does: %v", q.waiting)
	}
}

// A replay that takes longer than its turn does not hold up others.
func TestLongReplayDoesNotHoldUpOthers(t *testing.T) {
	q := newReplayQueue(1)
	began := time.UnixMilli(1000)
	q.begin("stuck", mailbox.At("r", "b"), began)
	q.enter(mailbox.At("r", "a"), classWake)
	q.expire(began.Add(replayTurn))
	if at, ok := q.next(); ok {
		t.Fatalf("%s starts within the turn", at)
	}
	q.expire(began.Add(replayTurn + 1))
	if at, ok := q.next(); !ok || at != mailbox.At("r", "a") {
		t.Errorf("%q, %v starts after the turn", at, ok)
	}
}

// While a supervisor replays its log, few others begin that nothing new waits for, until its turn is over.
func TestSupervisorReplaysBesideFewOthers(t *testing.T) {
	q := newReplayQueue(ReplaysAtOnceDefault)
	began := time.UnixMilli(1000)
	q.begin("super", mailbox.At("r", mailbox.Super), began)
	begun := 0
	for i := range 2 * ReplaysAtOnceDefault {
		if at := mailbox.At("r", fmt.Sprint("a", i)); q.enter(at, classWake) {
			q.begin(fmt.Sprint(i), at, began)
			begun++
		}
	}
	if begun != besideSupervisors {
		t.Errorf("%d replays began beside that of a supervisor, want %d", begun, besideSupervisors)
	}
	q.enter(mailbox.At("r", "new"), classEntry)
	if at, ok := q.next(); !ok || at != mailbox.At("r", "new") {
		t.Errorf("%q, %v: an actor with a new entry waits for the supervisor", at, ok)
	}
	if at, ok := q.next(); ok {
		t.Errorf("%s begins beside the supervisor", at)
	}
	q.expire(began.Add(supervisorTurn))
	if at, ok := q.next(); !ok || len(q.replaying) != 1 {
		t.Errorf("%q, %v: the turns of others end before that of the supervisor; %d replay", at, ok, len(q.replaying))
	}
	q.expire(began.Add(supervisorTurn + 1))
	if at, ok := q.next(); !ok || at != mailbox.At("r", "a9") || q.supervisors != 0 {
		t.Errorf("%q, %v, %d supervisors after the turn of the supervisor", at, ok, q.supervisors)
	}
}
