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
	start := func(id string) { q.replaying[id] = time.UnixMilli(1000) }
	for i := range 2 {
		if !q.enter(mailbox.At("r", fmt.Sprint("early-", i)), classWake) {
			t.Fatalf("shell %d waits", i)
		}
		start(fmt.Sprint(i))
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
	clear(q.replaying)
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
	q.replaying["stuck"] = began
	q.enter(mailbox.At("r", "a"), classWake)
	q.expire(began)
	if at, ok := q.next(); ok {
		t.Fatalf("%s starts within the turn", at)
	}
	q.expire(began.Add(1))
	if at, ok := q.next(); !ok || at != mailbox.At("r", "a") {
		t.Errorf("%q, %v starts after the turn", at, ok)
	}
}
