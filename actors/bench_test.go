//go:build unix

package actors_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/logstore/local"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// The benchmarks of turns: one model call and one tool call a turn, both
// instant. Print them with
//
//	go test ./actors -run '^$' -bench Turns -benchtime 1x
//
// Each line gives turns/s, CPU-free wall time a turn, and entries appended a turn; the floor
// lines give what the same server appends of entries of the same size.

// benchShape is who takes the turns of a benchmark.
type benchShape struct {
	name      string
	runs, fan int // runs, and how many children the root and each of those has; 0: none
	turns     int // of each agent
}

var shapes = []benchShape{
	{"1agent", 1, 0, 400},
	{"1run1056agents", 1, 32, 10},
	{"1000runs", 1000, 0, 10},
}

func BenchmarkTurns(b *testing.B) {
	for _, store := range []string{"memory", "lazy", "always", "local-lazy", "local-always"} {
		for _, s := range shapes {
			b.Run(store+"/"+s.name, func(b *testing.B) {
				for b.Loop() {
					benchTurns(b, openStore(b, store), s)
				}
			})
		}
		b.Run(store+"/floor", func(b *testing.B) {
			for b.Loop() {
				benchFloor(b, openStore(b, store))
			}
		})
	}
}

func openStore(b *testing.B, store string) mailbox.Store {
	if store == "memory" {
		return memory.New(memory.Config{})
	}
	if durability, ok := strings.CutPrefix(store, "local-"); ok {
		return openLocal(b, durability == "lazy")
	}
	e, err := embedded.Start(embedded.Config{StateDir: b.TempDir(), DontListen: true, Lazy: store == "lazy"})
	if err != nil {
		b.Fatal(err)
	}
	dial := func() *nats.Conn {
		nc, err := e.Connect(bus.RoleNode)
		if err != nil {
			b.Fatal(err)
		}
		return nc
	}
	owner, reader := dial(), dial()
	post, err := jetstream.Open(context.Background(), owner, jetstream.Config{Reader: reader})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := post.Close(); err != nil {
			b.Error(err)
		}
		owner.Close()
		reader.Close()
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	return post
}

func openLocal(b *testing.B, lazy bool) mailbox.Store {
	post, err := local.Open(context.Background(), local.Config{Dir: b.TempDir(), Lazy: lazy})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := post.Close(); err != nil {
			b.Error(err)
		}
	})
	return post
}

// benchClient calls one tool a turn; a root and its children delegate first
// where the shape has a tree.
func benchClient(s benchShape) model.Client {
	below := map[string]string{"boss": `{"agent":"lead","task":"go"}`, "lead": `{"agent":"helper","task":"go"}`}
	return clientFunc(func(_ context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
		taken := 0
		for _, m := range r.Messages {
			if m.Role == model.Assistant {
				taken++
			}
		}
		reply := sayReply("done")
		child := below[r.Caller.Name]
		switch {
		case s.fan > 0 && child != "" && taken == 0:
			for range s.fan {
				reply.Message.Calls = append(reply.Message.Calls, model.ToolCall{Name: "delegate", Args: child})
			}
		case s.fan > 0 && child != "", taken >= s.turns:
		default:
			reply.Message.Text = ""
			reply.Message.Calls = []model.ToolCall{{Name: "look", Args: `{"at":"here"}`}}
		}
		return reply, nil
	})
}

func benchTurns(b *testing.B, post mailbox.Store, s benchShape) {
	look := echoTool{name: "look", class: model.Read}
	set, err := tool.NewSet(look)
	if err != nil {
		b.Fatal(err)
	}
	client := benchClient(s)
	over := make(chan event.Result, s.runs)
	node, err := actors.Start(context.Background(), actors.Config{Post: post, Lease: 1,
		Model:    func(string) (model.Client, string, error) { return client, "m", nil },
		Tools:    func(spec.Task) (*tool.Set, error) { return set, nil },
		OnResult: func(_ string, r event.Result) { over <- r }})
	if err != nil {
		b.Fatal(err)
	}
	defer node.Stop()
	began, cpu := time.Now(), cpuTime()
	for i := range s.runs {
		o := openedRun(fmt.Sprintf("r%d", i), look, delegate)
		o.RootTurns = s.turns + 1
		o.Definitions = append(o.Definitions, supervisor.Definition{Name: "lead", System: "You lead a part."})
		o.Limits = spec.RunLimits{Calls: 1 << 30, Children: 64, Agents: 2000}
		o.Agent = spec.Limits{Children: 64}
		if err := node.Open(context.Background(), o); err != nil {
			b.Fatal(err)
		}
	}
	turns := 0
	for range s.runs {
		r := <-over
		if r.Reason != spec.Completed {
			b.Fatalf("a run ended %s: %s", r.Reason, r.Detail)
		}
		turns += r.Turns
	}
	took := time.Since(began)
	cpu = cpuTime() - cpu
	entries := int64(0)
	for i := range s.runs {
		err := post.ReadRun(context.Background(), fmt.Sprintf("r%d", i), func(mailbox.Message) error { entries++; return nil })
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(turns)/took.Seconds(), "turns/s")
	b.ReportMetric(float64(took.Microseconds())/float64(turns), "µs/turn")
	b.ReportMetric(float64(cpu.Microseconds())/float64(turns), "cpu-µs/turn")
	b.ReportMetric(float64(entries)/float64(turns), "entries/turn")
	b.ReportMetric(0, "ns/op")
}

// benchFloor appends entries of 300 bytes to 1,000 logs, as many at once as a
// node would have under way.
func benchFloor(b *testing.B, post mailbox.Store) {
	const entries, logs, atOnce = 20_000, 1000, 512
	data := make([]byte, 300)
	slots := make(chan struct{}, atOnce)
	began := time.Now()
	for i := range entries {
		slots <- struct{}{}
		post.Append(context.Background(), mailbox.At("floor", fmt.Sprintf("a%d", i%logs)), data, func(_ uint64, err error) {
			if err != nil {
				b.Error(err)
			}
			<-slots
		})
	}
	for range atOnce {
		slots <- struct{}{}
	}
	b.ReportMetric(entries/time.Since(began).Seconds(), "appends/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkIdleAgent prints the bytes that an actor costs while it waits, and
// how many agents are spawned a second. Each run has a root and a supervisor;
// the roots wait for a timer after a rate limit, so no goroutine belongs to them.
func BenchmarkIdleAgent(b *testing.B) {
	const runs = 2000
	busy := clientFunc(func(context.Context, model.Request, func(model.Delta)) (model.Reply, error) {
		return model.Reply{}, &model.Error{Class: model.RateLimit, Unbilled: true, RetryAfter: time.Hour}
	})
	for b.Loop() {
		waiting := make(chan struct{}, runs)
		post := memory.New(memory.Config{})
		node, err := actors.Start(context.Background(), actors.Config{Post: post, Lease: 1,
			Model: func(string) (model.Client, string, error) { return busy, "m", nil },
			OnEvent: func(e event.Published) {
				if e.Kind == event.KindModelRetry {
					waiting <- struct{}{}
				}
			}})
		if err != nil {
			b.Fatal(err)
		}
		before, began := heapBytes(), time.Now()
		for i := range runs {
			if err := node.Open(context.Background(), openedRun(fmt.Sprintf("r%d", i))); err != nil {
				b.Fatal(err)
			}
		}
		for range runs {
			<-waiting
		}
		b.ReportMetric(2*runs/time.Since(began).Seconds(), "actors/s")
		stored := storedBytes(b, post)
		b.ReportMetric(float64(heapBytes()-before-stored)/(2*runs), "B/actor")
		node.Stop()
	}
	b.ReportMetric(0, "ns/op")
}

// storedBytes is what the memory mailbox itself holds: the logs.
func storedBytes(b *testing.B, post mailbox.Store) (n uint64) {
	used, _, err := post.Room(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	return used
}

// BenchmarkReady prints how long an embedded node takes until it answers.
func BenchmarkReady(b *testing.B) {
	for b.Loop() {
		began := time.Now()
		post := openStore(b, "always")
		node, err := actors.Start(context.Background(), actors.Config{Post: post, Lease: 1,
			Model: func(string) (model.Client, string, error) { return nil, "", nil }})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "ms")
		node.Stop()
	}
	b.ReportMetric(0, "ns/op")
}

// cpuTime is what this process has used of the processors, user and system.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
