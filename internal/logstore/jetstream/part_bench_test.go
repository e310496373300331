//go:build unix

package jetstream_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// BenchmarkThreeNodesRead: three nodes follow 64 shards that somebody writes to.
// "all" reads everything on each, as a Tail does; "held" reads a third on each,
// as leases share the shards out; "none" is what the writer and the server cost.
func BenchmarkThreeNodesRead(b *testing.B) {
	for _, mode := range []string{"none", "all", "held"} {
		b.Run(mode, func(b *testing.B) { threeNodes(b, mode) })
	}
}

const benchNodes = 3

func threeNodes(b *testing.B, mode string) {
	e, err := embedded.Start(embedded.Config{StateDir: b.TempDir(), Port: embedded.FreePort, Lazy: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	connect := func() *nats.Conn { return dialLoopback(b, e) }
	var heard atomic.Int64
	var readers []*nats.Conn
	for n := range benchNodes {
		if mode == "none" {
			break
		}
		reader := connect()
		readers = append(readers, reader)
		p := openPost(b, connect(), jetstream.Config{Reader: reader})
		deliver := func(mailbox.Message) { heard.Add(1) }
		if mode == "all" {
			stop, err := p.Tail(b.Context(), deliver)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(stop)
			continue
		}
		part, err := p.Part(b.Context(), "default", deliver)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(part.Close)
		for s := n; s < p.Shards(); s += benchNodes {
			if err := part.Add(b.Context(), s); err != nil {
				b.Fatal(err)
			}
		}
	}
	w := openPost(b, connect(), jetstream.Config{})
	read := func() (bytes float64) {
		for _, nc := range readers {
			bytes += float64(nc.Stats().InBytes)
		}
		return bytes
	}
	before, cpu := read(), cpuTime(b)
	data := make([]byte, 600)
	var written sync.WaitGroup
	for i := 0; b.Loop(); i++ {
		written.Add(1)
		w.Append(b.Context(), mailbox.At(fmt.Sprintf("r%d", i%97), fmt.Sprintf("a%d", i%31)), data, func(_ uint64, err error) {
			if err != nil {
				b.Error(err)
			}
			written.Done()
		})
	}
	written.Wait()
	want := map[string]int64{"none": 0, "all": benchNodes, "held": 1}[mode] * int64(b.N)
	for tick := time.NewTicker(time.Millisecond); heard.Load() < want; <-tick.C {
	}
	b.ReportMetric((read()-before)/float64(b.N), "read-B/op")
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(b.N), "cpu-µs/op")
}

// dialLoopback connects over the loopback, as a node on another machine would.
func dialLoopback(b *testing.B, e *embedded.Server) *nats.Conn {
	user, password := e.Credential(bus.RoleNode)
	nc, err := bus.Connect(bus.Options{Servers: e.URL(), User: user, Password: password})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	return nc
}

// cpuTime is what this process has used: the server, the writer and the readers.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
