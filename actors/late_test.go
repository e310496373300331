package actors

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

// TestResultOfACallWithoutAShellIsLogged: its shell has crashed, and before
// another one starts the log is handed over, or the actor is given up. What its tool
// returned meanwhile is evidence, and is not lost.
func TestResultOfACallWithoutAShellIsLogged(t *testing.T) {
	at := mailbox.At("r", "root")
	for name, leave := range map[string]func(r *router, c actor.Context, done func()){
		"hand-over": func(r *router, c actor.Context, done func()) {
			r.handOver(c, handOver{"all", func(mailbox.Address, uint64) bool { return true }, done})
		},
		"given up": func(r *router, c actor.Context, done func()) {
			r.giveUpActor(c, actorHopeless{at, "it crashes"})
			done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				post := memory.New(memory.Config{})
				system, gone := newSystem(), make(chan struct{})
				returned := activation.OwnResult{At: at, Epoch: mailbox.Epoch{Lease: 1, Start: 1}, Start: "a", Kind: "returned", Key: "1-0",
					Body: agent.Returned{Call: "1-0", Attempt: 1, Text: "seen"}}
				replied := returned
				replied.Kind, replied.Key, replied.Body = "replied", activation.ModelKey(1), agent.Replied{Reservation: 1}
				r := newRouter(t.Context(), Config{Post: post, Holds: func(mailbox.Address) (uint64, bool) { return 1, true }, Logger: slog.New(slog.DiscardHandler)}, nil)
				r.shells[at] = &shellPlace{results: []activation.OwnResult{replied, returned}}
				pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
					switch m := c.Message().(type) {
					case wakeActor:
						leave(r, c, func() { close(gone) })
					case latePosted:
						r.latePosted(c, m)
					}
				}))
				system.Root.Send(pid, wakeActor{at})
				<-gone
				synctest.Wait()
				var kinds []string
				if err := post.Read(t.Context(), at, 0, 0, func(m mailbox.Message) error {
					e, err := mailbox.Decode(m.Data)
					kinds = append(kinds, e.Items[0].Kind)
					return err
				}); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(kinds, []string{"returned"}) {
					t.Errorf("the log has %v", kinds)
				}
				system.Shutdown()
			})
		})
	}
}
