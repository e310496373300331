package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

func benchServer(b *testing.B, lazy bool) *nats.Conn {
	e, err := embedded.Start(embedded.Config{StateDir: b.TempDir(), DontListen: true, Lazy: lazy})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	return dialServer(b, e)
}

func runDurabilities(b *testing.B, run func(*testing.B, *jetstream.Post)) {
	for name, lazy := range map[string]bool{"lazy": true, "sync": false} {
		b.Run(name, func(b *testing.B) { run(b, openPost(b, benchServer(b, lazy), jetstream.Config{})) })
	}
}

// BenchmarkAppend waits for each acknowledgement before the next.
func BenchmarkAppend(b *testing.B) {
	runDurabilities(b, func(b *testing.B, p *jetstream.Post) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		data := make([]byte, 300)
		acked := make(chan error, 1)
		done := func(_ uint64, err error) { acked <- err }
		var took []time.Duration
		b.ReportAllocs()
		for b.Loop() {
			start := time.Now()
			p.Append(ctx, "run.agent", data, done)
			if err := <-acked; err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	})
}

// BenchmarkRound is append, and wait for the entry to come round by the tail.
func BenchmarkRound(b *testing.B) {
	runDurabilities(b, func(b *testing.B, p *jetstream.Post) {
		data := make([]byte, 300)
		got := make(chan struct{}, 1)
		stop, err := p.Tail(b.Context(), func(mailbox.Message) { got <- struct{}{} })
		if err != nil {
			b.Fatal(err)
		}
		defer stop()
		for b.Loop() {
			p.Append(b.Context(), "run.agent", data, func(uint64, error) {})
			<-got
		}
	})
}

// BenchmarkMany keeps 1,000 agents appending.
func BenchmarkMany(b *testing.B) {
	runDurabilities(b, func(b *testing.B, p *jetstream.Post) {
		data := make([]byte, 300)
		var all sync.WaitGroup
		var at []mailbox.Address
		for i := range 1000 {
			at = append(at, mailbox.At("run", fmt.Sprintf("a%d", i)))
		}
		room := make(chan struct{}, 1000)
		i := 0
		for b.Loop() {
			room <- struct{}{}
			all.Add(1)
			p.Append(b.Context(), at[i%len(at)], data, func(_ uint64, err error) {
				if err != nil {
					b.Error(err)
				}
				<-room
				all.Done()
			})
			i++
		}
		all.Wait()
	})
}

// BenchmarkRead takes 1,000 logs of 50 entries, one by one and as one run.
func BenchmarkRead(b *testing.B) {
	p := openPost(b, benchServer(b, true), jetstream.Config{})
	const logs, each = 1000, 50
	var all sync.WaitGroup
	data := make([]byte, 300)
	for i := range logs * each {
		all.Add(1)
		p.Append(b.Context(), mailbox.At("run", fmt.Sprintf("a%d", i%logs)), data, func(_ uint64, err error) {
			if err != nil {
				b.Error(err)
			}
			all.Done()
		})
	}
	all.Wait()
	count := 0
	add := func(mailbox.Message) error { count++; return nil }
	check := func(b *testing.B, want int, err error) {
		if err != nil || count != want {
			b.Fatalf("%d of %d, %v", count, want, err)
		}
		count = 0
	}
	b.Run("one log", func(b *testing.B) {
		i := 0
		for b.Loop() {
			err := p.Read(b.Context(), mailbox.At("run", fmt.Sprintf("a%d", i%logs)), 0, 0, add)
			check(b, each, err)
			i++
		}
	})
	b.Run("run of 1000", func(b *testing.B) {
		for b.Loop() {
			check(b, logs*each, p.ReadRun(b.Context(), "run", add))
		}
	})
	b.Run("addresses", func(b *testing.B) {
		for b.Loop() {
			if at, err := p.Addresses(b.Context(), "run"); err != nil || len(at) != logs {
				b.Fatal(len(at), err)
			}
		}
	})
}

// BenchmarkOpen is from nothing to a mailbox with a tail: the start of a node.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		e, err := embedded.Start(embedded.Config{StateDir: b.TempDir(), Port: embedded.FreePort})
		if err != nil {
			b.Fatal(err)
		}
		nc, err := e.Connect(bus.RoleNode)
		if err != nil {
			b.Fatal(err)
		}
		p, err := jetstream.Open(b.Context(), nc, jetstream.Config{})
		if err != nil {
			b.Fatal(err)
		}
		stop, err := p.Tail(b.Context(), func(mailbox.Message) {})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		stop()
		err = p.Close()
		nc.Close()
		if err := errors.Join(err, e.Close()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
