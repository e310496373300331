//go:build unix

package activation_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// BenchmarkTurn prints what a turn costs without actors, goroutines and stores:
// one agent and its supervisor, a model call and a tool call, every entry
// encoded, read, stepped and answered.
//
//	go test ./internal/activation -run '^$' -bench Turn -benchmem
func BenchmarkTurn(b *testing.B) {
	const turns = 20
	b.ReportAllocs()
	n, cpu := 0, cpuTime()
	for b.Loop() {
		newPair(b, turns).runToRest()
		n += turns
	}
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(n), "cpu-µs/turn")
}

// BenchmarkReplay prints how fast a log is folded: that of an agent of 2,000 entries.
func BenchmarkReplay(b *testing.B) {
	const entries = 2000
	p := newPair(b, entries/2) // a turn has a reply and a result
	p.runToRest()
	log := p.logs[p.root.Addr]
	if len(log) < entries {
		b.Fatalf("%d entries", len(log))
	}
	b.ReportAllocs()
	n, cpu := 0, cpuTime()
	for b.Loop() {
		l := activation.NewLogReader(p.root.Addr, "", mailbox.Epoch{}, &activation.Agent{Addr: p.root.Addr})
		for _, m := range log {
			l.Next(m)
		}
		n += len(log)
	}
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(n), "cpu-ns/entry")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
}

// cpuTime is what this process has used of the processors: on a machine that
// others use, too, it says more than the clock.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// agentPair is an agent and its supervisor over logs in memory.
type agentPair struct {
	b           testing.TB
	turns       int
	root, super *activation.LogReader
	agent       *activation.Agent // of the root
	logs        map[mailbox.Address][]mailbox.Message
	read        map[mailbox.Address]int
}

func newPair(b testing.TB, turns int) *agentPair {
	root, super := mailbox.At("r", "root"), mailbox.At("r", mailbox.Super)
	p := &agentPair{b: b, turns: turns, agent: &activation.Agent{Addr: root}, logs: map[mailbox.Address][]mailbox.Message{}, read: map[mailbox.Address]int{}}
	p.root = activation.NewLogReader(root, "a", mailbox.Epoch{Lease: 1, Start: 1}, p.agent)
	p.super = activation.NewLogReader(super, "s", mailbox.Epoch{Lease: 1, Start: 1}, &activation.Supervisor{Addr: super})
	o := supervisor.Opened{Run: "r", Goal: "Compare.", Root: "lead", RootTurns: turns + 1,
		Definitions: []supervisor.Definition{{Name: "lead", System: "You compare."}}, Model: spec.Model{Name: "test/m", Window: 200_000},
		Tools:  offeredTools(),
		Limits: spec.RunLimits{Calls: 1 << 30}, LoopOptions: spec.DefaultLoopOptions()}
	body, err := mailbox.Marshal(o)
	p.mustSucceed(err)
	p.appendEntry(super, mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "open", Kind: o.Kind(), Body: body}}}, nil)
	p.appendClaim(p.super)
	return p
}

// offeredTools are as many tools as an agent mostly has.
func offeredTools() []model.ToolSpec {
	specs := []model.ToolSpec{{Name: "look", Description: "Look.", Schema: `{"type":"object","properties":{"at":{"type":"string"}}}`, Class: model.Read}}
	for i := range 7 {
		specs = append(specs, model.ToolSpec{Name: fmt.Sprintf("tool_%d", i), Description: "Does something.", Class: model.Read,
			Schema: `{"type":"object","required":["path"],"additionalProperties":false,"properties":{"path":{"type":"string"},"from":{"type":"integer","minimum":0},"lines":{"type":"integer"}}}`})
	}
	return specs
}

func (p *agentPair) mustSucceed(err error) {
	if err != nil {
		p.b.Fatal(err)
	}
}

func (p *agentPair) appendEntry(to mailbox.Address, e mailbox.Entry, err error) {
	p.mustSucceed(err)
	data, err := mailbox.Encode(e)
	p.mustSucceed(err)
	n := len(p.logs[to])
	p.logs[to] = append(p.logs[to], mailbox.Message{To: to, Place: uint64(n + 1), At: int64(1000 + n), Data: data}) //nolint:gosec // few entries
	if to == p.root.Addr && n == 0 {                                                                                // its node claims the log of an agent that has its task
		p.appendClaim(p.root)
	}
}

func (p *agentPair) appendClaim(l *activation.LogReader) {
	e, err := l.Claim("n", "")
	p.appendEntry(l.Addr, e, err)
}

// runToRest goes on until nothing moves any more.
func (p *agentPair) runToRest() {
	for moved := true; moved; {
		moved = false
		for _, l := range []*activation.LogReader{p.super, p.root} {
			for p.read[l.Addr] < len(p.logs[l.Addr]) {
				moved = true
				r := l.Next(p.logs[l.Addr][p.read[l.Addr]])
				p.mustSucceed(r.Err)
				p.read[l.Addr]++
				for _, e := range r.Effects {
					p.carryOut(l, e)
				}
				for {
					to, messages, ok := l.Outbox.Take(false)
					if !ok {
						break
					}
					p.appendEntry(to, l.MessageEntry(messages), nil)
					l.Outbox.Acked(to)
				}
			}
		}
	}
	if s := p.agent.State; s.Phase != agent.Done || s.Turn != p.turns+1 {
		p.b.Fatalf("%s after %d turns: %+v", s.Phase, s.Turn, s.Outcome)
	}
}

// carryOut does an effect at once.
func (p *agentPair) carryOut(l *activation.LogReader, effect any) {
	own := func(kind, key string, body any) {
		e, err := l.OwnEntry(kind, key, body)
		p.appendEntry(l.Addr, e, err)
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
