//go:build unix

package actors_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// BenchmarkSupervisor prints how many reservations a second one supervisor
// grants through real logs: its members are messages that the benchmark writes,
// so that nothing but the supervisor works. A reservation is an entry in its log
// (with the settlement of the one before) and one in the member's, so half of
// the floor is the most there can be.
//
//	go test ./actors -run '^$' -bench Supervisor -benchtime 1x
func BenchmarkSupervisor(b *testing.B) {
	for _, store := range []string{"memory", "lazy", "always"} {
		for _, members := range []int{100, 10_000} {
			b.Run(fmt.Sprintf("%s/members=%d", store, members), func(b *testing.B) {
				for b.Loop() {
					benchSupervisor(b, openStore(b, store), members)
				}
			})
		}
	}
}

// memberCrowd writes the messages of the members of a run. Like theirs, the next one of
// a sender goes out when the one before is known to be in the log.
type memberCrowd struct {
	b           *testing.B
	post        mailbox.Post
	told        chan spec.ID // who got an entry
	sent        map[spec.ID]uint64
	reservation map[spec.ID]int
}

// memberLetters is the entry that holds messages of one member.
func (c *memberCrowd) memberLetters(from spec.ID, asks ...agent.SupervisorMessage) []byte {
	e := mailbox.Entry{Form: mailbox.Form, From: mailbox.At("r", string(from))}
	for _, ask := range asks {
		body, err := mailbox.Marshal(ask)
		if err != nil {
			c.b.Fatal(err)
		}
		c.sent[from]++
		e.Items = append(e.Items, mailbox.Item{N: c.sent[from], Kind: ask.Kind(), Body: body})
	}
	data, err := mailbox.Encode(e)
	if err != nil {
		c.b.Fatal(err)
	}
	return data
}

// settleAndReserve settles a member's last reservation and asks for the next.
func (c *memberCrowd) settleAndReserve(id spec.ID) {
	c.reservation[id]++
	n := c.reservation[id]
	asks := []agent.SupervisorMessage{agent.Reserve{Reservation: n, Turn: n, Request: budget.AttemptRequest{Input: 100, Output: 1000, OutputMin: 64, Closing: 100}}}
	if n > 1 {
		asks = append([]agent.SupervisorMessage{agent.Settle{Reservation: n - 1, Used: budget.Amount{Tokens: 300}}}, asks...)
	}
	c.post.Append(context.Background(), mailbox.At("r", mailbox.Super), c.memberLetters(id, asks...), func(_ uint64, err error) {
		if err != nil {
			c.b.Error(err)
		}
	})
}

// joinMembers has the root delegate to everyone, 64 in an entry.
func (c *memberCrowd) joinMembers(members []spec.ID) {
	for some := range slices.Chunk(members, 64) {
		asks := make([]agent.SupervisorMessage, len(some))
		for i, id := range some {
			asks[i] = agent.Delegate{Call: "1-0", Child: id, Goal: "go"}
		}
		if _, err := mailbox.Put(context.Background(), c.post, mailbox.At("r", mailbox.Super), c.memberLetters(spec.Root, asks...)); err != nil {
			c.b.Fatal(err)
		}
	}
	for range members {
		<-c.told
	}
}

func benchSupervisor(b *testing.B, post mailbox.Store, size int) {
	const reservations, atOnce = 20_000, 512
	c := &memberCrowd{b: b, post: post, told: make(chan spec.ID, 2*size), sent: map[spec.ID]uint64{}, reservation: map[spec.ID]int{}}
	stop, err := post.Tail(context.Background(), func(m mailbox.Message) {
		if m.To.Agent() != mailbox.Super {
			c.told <- spec.ID(m.To.Agent())
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	node, err := actors.Start(context.Background(), actors.Config{Post: post,
		Holds: func(at mailbox.Address) (uint64, bool) { return 1, at.Agent() == mailbox.Super },
		Model: func(string) (model.Client, string, error) { return nil, "", nil }})
	if err != nil {
		b.Fatal(err)
	}
	defer node.Stop()
	o := openedRun("r", delegate)
	o.Limits = spec.RunLimits{Calls: 1 << 30, Children: size, Agents: size + 1}
	if err := node.Open(context.Background(), o); err != nil {
		b.Fatal(err)
	}
	<-c.told
	members := make([]spec.ID, size)
	for i := range members {
		members[i] = spec.ID(fmt.Sprintf("root-1-%d", i))
	}
	c.joinMembers(members)
	began, cpu := time.Now(), cpuTime()
	idle := members // members without a request in flight
	for asked, answered := 0, 0; answered < reservations; {
		for asked < reservations && asked-answered < atOnce && len(idle) > 0 {
			c.settleAndReserve(idle[0])
			idle = idle[1:]
			asked++
		}
		idle = append(idle, <-c.told)
		answered++
	}
	took := time.Since(began)
	b.ReportMetric(reservations/took.Seconds(), "reservations/s")
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/reservations, "cpu-µs/reservation")
	b.ReportMetric(0, "ns/op")
}
