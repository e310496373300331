package schedules

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control/workgroup"
	"github.com/troupe-run/troupe/internal/schedule"
)

// newTriggered returns a scheduler, and a function that gives a message to its one schedule, which has a trigger. open opens
// the runs.
func newTriggered(t *testing.T, open func() error) (deliver func(id string, at time.Time) error, events *[]published) {
	t.Helper()
	cfg, events := newConfig(t)
	cfg.OpenRun = func(context.Context, client.RunRequest) error { return open() }
	cfg.NewRefusal = func(err error) *client.Error {
		if refusal := (*client.Error)(nil); errors.As(err, &refusal) {
			return refusal
		}
		return &client.Error{Code: client.CodeInternal, Text: err.Error()}
	}
	work := workgroup.New(cfg.Logger)
	t.Cleanup(work.Close)
	c := NewScheduler(cfg, work)
	if _, err := NewRegistry(cfg).Create(t.Context(), client.RunRequest{RunID: "s", Prompt: "look", On: "deploys"}); err != nil {
		t.Fatal(err)
	}
	return func(id string, at time.Time) error {
		t.Helper()
		s, err := c.logs.read(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		return c.beginByMessage(t.Context(), "s", s, &bus.TriggerMessage{ID: id, At: at, Data: []byte("done")})
	}, events
}

// The run of a message cannot be opened at first. The message comes again, and its run is announced as any other. A
// message with the same Nats-Msg-Id begins no run, and announces none.
func TestBeginByMessage_PublishesFiredAlsoAtTheSecondAttempt(t *testing.T) {
	t.Parallel()
	failures := 1
	deliver, events := newTriggered(t, func() error {
		if failures--; failures >= 0 {
			return errors.New("no leader")
		}
		return nil
	})
	if err := deliver("=m", now); err == nil {
		t.Fatal("the failure is lost")
	}
	if err := deliver("=m", now); err != nil {
		t.Fatal(err)
	}
	if len(*events) != 1 || (*events)[0].kind != event.KindScheduleFired {
		t.Fatalf("%+v, want one schedule.fired", *events)
	}
	if err := deliver("=m", now.Add(time.Second)); err != nil || len(*events) != 1 {
		t.Errorf("%+v, %v, after a copy of the message", *events, err)
	}
}

// Two messages of the same millisecond are refused: each has an event of its own.
func TestBeginByMessage_EachRefusedMessageHasItsEvent(t *testing.T) {
	t.Parallel()
	deliver, events := newTriggered(t, func() error { return &client.Error{Code: client.CodeBad, Text: "no such agent"} })
	for _, id := range []string{"#1", "#2"} {
		if err := deliver(id, now); err != nil {
			t.Fatal(err)
		}
	}
	if len(*events) != 2 || (*events)[0].name == (*events)[1].name {
		t.Fatalf("%+v, want two with different names", *events)
	}
	for _, e := range *events {
		if missed, ok := e.data.(event.ScheduleMissed); !ok || missed.Why != schedule.WhyRefused || missed.Due != formatMS(now.UnixMilli()) {
			t.Errorf("%+v", e)
		}
	}
}
