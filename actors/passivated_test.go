package actors

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
)

// Those who are due come in their order, each once, whoever was woken or changed
// meanwhile; who is never due is only counted.
func TestPassivatedActorsComeDueInOrder(t *testing.T) {
	var r passivatedSet
	at := func(i int) mailbox.Address { return mailbox.At(fmt.Sprint("r", i), "root") }
	for i := range 100 {
		if !r.put(at(i), int64(i%10*100)) { // one in ten is never due
			t.Errorf("%s is not new", at(i))
		}
	}
	if r.put(at(5), 5) || !r.drop(at(6)) || r.drop(at(6)) || r.nextDue() != 5 {
		t.Errorf("the first is due at %d", r.nextDue())
	}
	last, woken := int64(0), 0
	for who, ok := r.firstDue(10_000); ok; who, ok = r.firstDue(10_000) {
		when := r.when[who]
		if when < last {
			t.Errorf("%s is due at %d, after one of %d", who, when, last)
		}
		last = when
		woken++
		r.drop(who)
	}
	if woken != 89 || len(r.when) != 10 || r.nextDue() != 0 {
		t.Errorf("%d were due, %d are left, the next at %d", woken, len(r.when), r.nextDue())
	}
}

// Who comes to rest and is woken again and again leaves nothing behind.
func TestPassivatedActorsLeaveNoStaleEntries(t *testing.T) {
	var r passivatedSet
	r.put("r.other", 0)
	for i := range 10_000 {
		r.put("r.root", int64(1_000_000-i))
		r.drop("r.root")
	}
	if r.due.Len() > 0 {
		t.Errorf("%d are still due", r.due.Len())
	}
	if _, ok := r.firstDue(1 << 40); ok {
		t.Error("nobody is due")
	}
}

// After a night without a node very many may be due at once. They are woken a part
// at a time, so that the router hears of cancels and entries in between, and all
// of them are woken.
func TestDueActorsAreWokenInBatches(t *testing.T) {
	const due = 3*wakesAtOnce + 7
	system := newSystem()
	defer system.Shutdown()
	awake, looks, most, left := 0, 0, 0, make(chan int, 1)
	r := newRouter(t.Context(), Config{Holds: func(mailbox.Address) (uint64, bool) { return 0, false }, // theirs to wake who hold them
		Passivated: func(mailbox.Address, int) { awake++ }}, nil)
	for i := range due {
		r.passivated.put(mailbox.At(fmt.Sprint("r", i), "root"), 1)
	}
	root := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(alarmTick); !ok {
			return
		}
		before := awake
		r.wakeDue(c)
		looks, most = looks+1, max(most, awake-before)
		if len(r.passivated.when) == 0 {
			left <- looks
		}
	}))
	system.Root.Send(root, alarmTick{})
	if n := <-left; n != due/wakesAtOnce+1 || most != wakesAtOnce || awake != due {
		t.Errorf("%d were woken in %d looks, %d at most in one", awake, n, most)
	}
}

// A node runs on the system that its caller has made.
func TestNodeTakesAPreparedSystem(t *testing.T) {
	t.Parallel()
	made := NewSystem()
	n, err := Start(t.Context(), Config{Post: memory.New(memory.Config{}), Model: func(string) (model.Client, string, error) { return nil, "", nil }, System: func() *System { return made }})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	if n.system != made.actors {
		t.Error("the node has made another system")
	}
}
