package replay_test

import (
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// longRun makes the logs of a run of one agent, by the machines themselves.
func longRun(t testing.TB, turns int) []mailbox.Message {
	t.Helper()
	p := &pump{t: t, turns: turns, logs: map[mailbox.Address][]mailbox.Message{}, read: map[mailbox.Address]int{}}
	super, root := mailbox.At("r", mailbox.Super), mailbox.At("r", "root")
	p.readers = []*activation.LogReader{
		activation.NewLogReader(super, "s", mailbox.Epoch{Lease: 1, Start: 1}, &activation.Supervisor{Addr: super}),
		activation.NewLogReader(root, "a", mailbox.Epoch{Lease: 1, Start: 1}, &activation.Agent{Addr: root}),
	}
	o := supervisor.Opened{Run: "r", Goal: "Compare.", Root: "lead", RootTurns: turns + 1, Definitions: []supervisor.Definition{{Name: "lead", System: "You compare."}},
		Model:  spec.Model{Name: "test/m", Window: 2_000_000},
		Tools:  []model.ToolSpec{{Name: "look", Description: "Look.", Schema: `{"type":"object"}`, Class: model.Read}},
		Limits: spec.RunLimits{Calls: 1 << 30}}
	p.append(super, mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "open", Kind: o.Kind(), Body: encode(t, o)}}}, nil)
	p.run()
	var log []mailbox.Message
	for _, l := range p.readers {
		log = append(log, p.logs[l.Addr]...)
	}
	return log
}

// pump carries entries from log to log until nothing moves.
type pump struct {
	t       testing.TB
	turns   int
	readers []*activation.LogReader
	logs    map[mailbox.Address][]mailbox.Message
	read    map[mailbox.Address]int
}

func (p *pump) append(to mailbox.Address, e mailbox.Entry, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	data, err := mailbox.Encode(e)
	if err != nil {
		p.t.Fatal(err)
	}
	p.logs[to] = append(p.logs[to], mailbox.Message{To: to, Place: uint64(len(p.logs[to]) + 1), At: int64(1000 + len(p.logs[to])), Data: data})
}

func (p *pump) run() {
	claimed, closed := map[mailbox.Address]bool{}, map[mailbox.Address]bool{}
	for moved := true; moved; {
		moved = false
		for _, l := range p.readers {
			for p.read[l.Addr] < len(p.logs[l.Addr]) {
				moved = true
				r := l.Next(p.logs[l.Addr][p.read[l.Addr]])
				if r.Err != nil {
					p.t.Fatal(r.Err)
				}
				p.read[l.Addr]++
				for _, effect := range r.Effects {
					p.carryOut(l, effect)
				}
				for to, messages, ok := l.Outbox.Take(true); ok; to, messages, ok = l.Outbox.Take(true) {
					p.append(to, l.MessageEntry(messages), nil)
					l.Outbox.Acked(to)
				}
			}
			if !claimed[l.Addr] && len(p.logs[l.Addr]) > 0 {
				claimed[l.Addr], moved = true, true
				e, err := l.Claim("n", "")
				p.append(l.Addr, e, err)
			}
			if l.MayClose() && !closed[l.Addr] {
				closed[l.Addr], moved = true, true
				end, err := l.Closing()
				if err != nil {
					p.t.Fatal(err)
				}
				e, err := l.OwnEntry("closed", "end", end)
				p.append(l.Addr, e, err)
			}
		}
	}
}

// carryOut does an effect at once.
func (p *pump) carryOut(l *activation.LogReader, effect any) {
	own := func(kind, key string, body any) {
		e, err := l.OwnEntry(kind, key, body)
		p.append(l.Addr, e, err)
	}
	switch e := effect.(type) {
	case agent.CallModel:
		reply := model.Reply{Message: model.Message{Text: "done"}, Stop: model.StopEnd, UsageKnown: true, Usage: model.Usage{Input: 100, Output: 10}}
		if e.Turn <= p.turns {
			reply.Message = model.Message{Calls: []model.ToolCall{{Name: "look", Args: fmt.Sprintf(`{"at":"%d"}`, e.Turn)}}}
			reply.Stop = model.StopTools
		}
		own("replied", fmt.Sprintf("lease-%d", e.Reservation), agent.Replied{Reservation: e.Reservation, Reply: reply, TookMS: 3})
	case agent.CallTool:
		own("returned", e.Call, agent.Returned{Call: e.Call, Attempt: e.Attempt, Text: "behind door " + e.Args + " there is another one", TookMS: 1})
	}
}
