package actors

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// countedModel is a model that is not to be called.
type countedModel struct{ calls atomic.Int32 }

func (m *countedModel) Complete(context.Context, model.Request, func(model.Delta)) (model.Reply, error) {
	m.calls.Add(1)
	return model.Reply{UsageKnown: true}, nil
}

// An agent that waits at the throttle may have been canceled, or have lost the log, by the time it
// is admitted: nothing is sent then, and the reservation comes back unused (P4, P21).
//
//behaviour:shows G6
func TestAttemptIsCheckedAgainAfterAThrottleWait(t *testing.T) {
	for what, c := range map[string]struct {
		change func(s *shell, held *atomic.Bool)
		calls  int32
		kind   string
	}{
		"nothing has changed":          {func(*shell, *atomic.Bool) {}, 1, "replied"},
		"the log is held by nobody":    {func(_ *shell, held *atomic.Bool) { held.Store(false) }, 0, "throttled"},
		"the run was canceled":         {func(s *shell, _ *atomic.Bool) { s.work.abortWork(activation.ModelKey(1)) }, 0, "throttled"},
		"the activation is superseded": {func(s *shell, _ *atomic.Bool) { s.work.endWork(activation.ModelKey(1)) }, 0, ""},
	} {
		system, client, at := newSystem(), &countedModel{}, mailbox.At("r1", "root")
		asks, results := make(chan throttleRequest, 1), make(chan activation.OwnResult, 1)
		spawn := func(receive actor.ReceiveFunc) *actor.PID { return system.Root.Spawn(actor.PropsFromFunc(receive)) }
		var held atomic.Bool
		held.Store(true)
		s := &shell{ctx: t.Context(), addr: at, start: "a", state: activation.New(at, "a", mailbox.Epoch{Lease: 1}, "test", false), work: activeWork{busy: func(int) {}},
			router: spawn(func(c actor.Context) {
				if m, ok := c.Message().(activation.OwnResult); ok {
					results <- m
				}
			})}
		s.cfg = &Config{Holds: func(mailbox.Address) (uint64, bool) { return 1, held.Load() }, ThrottleOf: func(route string) string { return route }, Rates: func(string) throttle.Rates { return throttle.Rates{} },
			Model: func(string) (model.Client, string, error) { return client, "m", nil },
			keeper: spawn(func(c actor.Context) {
				if m, ok := c.Message().(throttleRequest); ok {
					asks <- m
				}
			})}
		system.Root.Send(spawn(func(c actor.Context) {
			if _, ok := c.Message().(wakeActor); ok {
				s.carryOut(c, activation.Perform{Effect: agent.CallModel{Reservation: 1, Model: "script/one"}, Key: activation.ModelKey(1), Lease: 1})
			}
		}), wakeActor{at})
		asked := <-asks
		c.change(s, &held)
		v := asked.begin(func() {})
		if got := client.calls.Load(); got != c.calls || (v.as == throttle.Neutral) != (c.calls == 0) {
			t.Errorf("%s: the model was called %d times, the gate hears %q", what, got, v.as)
		}
		if c.kind == "" {
			system.Root.Send(s.router, activation.OwnResult{}) // all that was to come has come
		}
		if w := <-results; w.Kind != c.kind {
			t.Errorf("%s: %q is delivered, not %q", what, w.Kind, c.kind)
		}
		system.Shutdown()
	}
}
