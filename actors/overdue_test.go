package actors_test

import (
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// TestSupervisorPassivatesWithOverdueInquiry: a supervisor that follows a crash has asked its
// members, and is idle for longer than until it would ask again. It leaves memory, and is
// woken to ask.
func TestSupervisorPassivatesWithOverdueInquiry(t *testing.T) {
	inBubble(aSupervisorThatIsLateToAskRests)(t)
}

func aSupervisorThatIsLateToAskRests(t *testing.T) {
	const linger = 2 * supervisor.AskMS * time.Millisecond
	post := memory.New(memory.Config{})
	first := playClient(t, post, 1, scriptModel(t, asks))
	if err := first.node.Open(t.Context(), askingRun("r1")); err != nil {
		t.Fatal(err)
	}
	first.awaitEvent(event.KindQueryAsked)
	first.node.Stop()
	set, err := tool.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	super, changes := mailbox.At("r1", mailbox.Super), make(chan int, 64)
	second := stageOf(t, actors.Config{Name: "test", Post: post, Lease: 2, IdleTimeout: linger,
		Passivated: func(at mailbox.Address, change int) {
			if at == super {
				changes <- change
			}
		},
		Model: func(string) (model.Client, string, error) { return scriptModel(t, asks), "m", nil },
		Tools: func(spec.Task) (*tool.Set, error) { return set, nil }})
	if err := second.node.Resume(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	late := time.After(4 * linger)
	for _, want := range []int{+1, -1} { // it goes, and is woken
		select {
		case got := <-changes:
			if got != want {
				t.Fatalf("the number of supervisors at rest changed by %d, want %d", got, want)
			}
		case <-late:
			t.Fatalf("after %v no change by %d", 4*linger, want)
		}
	}
}
