package bus_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// openTriggers returns the triggers of a server of this test alone, and a function that sends a message to one.
func openTriggers(t *testing.T) (*bus.Triggers, func(trigger, text string)) {
	t.Helper()
	e := bustest.StartServer(t)
	nc := bustest.Connect(t, e, bus.RoleNode)
	sender := bustest.Connect(t, e, bus.RoleClient)
	triggers, err := bus.NewTriggers(nc, names.Names{})
	if err != nil {
		t.Fatal(err)
	}
	if err := triggers.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return triggers, func(trigger, text string) {
		t.Helper()
		subject, err := names.Names{}.TriggerSubject(trigger)
		if err != nil {
			t.Fatal(err)
		}
		if err := publish(sender, subject, text); err != nil {
			t.Fatal(err)
		}
	}
}

// publish publishes a text, and returns once the server has it.
func publish(nc *nats.Conn, subject, text string) error {
	if err := nc.Publish(subject, []byte(text)); err != nil {
		return err
	}
	return nc.FlushTimeout(10 * time.Second)
}

// A deleted schedule may be made again with another trigger before the consumer of the first is closed, and a node that
// read the first one may open that again. The schedule gets the messages of the trigger that it asks for.
func TestTriggers_FollowTheTriggerOfTheSchedule(t *testing.T) {
	t.Parallel()
	triggers, send := openTriggers(t)
	open := func(trigger string) {
		t.Helper()
		if err := triggers.Open(t.Context(), "s", trigger); err != nil {
			t.Fatal(err)
		}
	}
	take := func(trigger string, wait time.Duration) string {
		t.Helper()
		m, err := triggers.Next(t.Context(), "s", trigger, wait)
		if m == nil && err == nil { // it has opened the consumer of the trigger
			m, err = triggers.Next(t.Context(), "s", trigger, wait)
		}
		if err != nil {
			t.Fatal(err)
		}
		if m == nil {
			return ""
		}
		if err := m.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		return string(m.Data)
	}
	const soon, long = 200 * time.Millisecond, 10 * time.Second
	open("first")
	open("second")
	send("first", "for the first")
	send("second", "one")
	if got := take("second", long); got != "one" {
		t.Errorf("after another trigger was opened: %q, want one", got)
	}
	send("second", "two")
	open("second") // harmless: the message that waits stays
	if got := take("second", long); got != "two" {
		t.Errorf("after the same trigger was opened again: %q, want two", got)
	}
	open("first") // by a node that has not read that the schedule was made again
	if got := take("second", soon); got != "" {
		t.Errorf("%q before a message was sent", got)
	}
	send("first", "for the first")
	send("second", "three")
	if got := take("second", long); got != "three" {
		t.Errorf("after another node has opened the first trigger: %q, want three", got)
	}
}

// A schedule without a consumer may have been deleted since its scheduler read its log, and another node has closed the
// consumer. Next opens it for a schedule that was made a moment ago, but returns at once: the scheduler reads the log
// again and closes what a deleted schedule has.
func TestTriggers_NextDoesNotWaitOnAConsumerThatItOpens(t *testing.T) {
	t.Parallel()
	triggers, send := openTriggers(t)
	const long = 10 * time.Second
	began := time.Now()
	if m, err := triggers.Next(t.Context(), "s", "deploys", long); m != nil || err != nil {
		t.Fatal(m, err)
	}
	if took := time.Since(began); took > long/2 {
		t.Errorf("Next waited %s on the consumer that it opened", took)
	}
	send("deploys", "one") // which the consumer keeps
	m, err := triggers.Next(t.Context(), "s", "deploys", long)
	if err != nil || m == nil || string(m.Data) != "one" {
		t.Errorf("after the consumer was opened: %+v, %v", m, err)
	}
}
