package node

import (
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/control/runevent"
)

// BenchmarkEventHeaders publishes one event as it is, and with the headers of CloudEvents in binary mode, to observers of
// a stock server; docs/decisions.md has the result. Bytes are those that one observer receives.
func BenchmarkEventHeaders(b *testing.B) {
	const observers = 10
	url := bustest.PlainServer(b, &server.Options{})
	e := event.Published{V: 1, ID: "01k9z3v7n2c4q8s6t0w1x5y9za.root-1-0#17.1", TS: event.FormatStamp(1767323045678), Run: "01k9z3v7n2c4q8s6t0w1x5y9za",
		Agent: "root-1-0", Node: "host", Seq: 17, Kind: event.KindModelStarted, Turn: 3, Data: event.ModelStarted{Model: "anthropic/claude-sonnet-5", Reservation: 3}}
	data, err := runevent.Encode(e)
	if err != nil {
		b.Fatal(err)
	}
	plain := &nats.Msg{Subject: "evt." + e.Run, Data: data}
	marked := &nats.Msg{Subject: plain.Subject, Data: data, Header: nats.Header{
		"ce-specversion": {"1.0"}, "ce-id": {e.ID}, "ce-source": {"troupe/" + e.Run + "/" + e.Agent},
		"ce-type": {"run.troupe." + e.Kind}, "ce-time": {e.TS}, "content-type": {"application/json"},
	}}
	for name, m := range map[string]*nats.Msg{"plain": plain, "cloudevents": marked} {
		b.Run(name, func(b *testing.B) {
			conn, err := nats.Connect(url)
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			var read sync.WaitGroup
			for range observers {
				o, err := nats.Connect(url)
				if err != nil {
					b.Fatal(err)
				}
				defer o.Close()
				read.Add(b.N)
				sub, err := o.Subscribe(m.Subject, func(*nats.Msg) { read.Done() })
				if err != nil {
					b.Fatal(err)
				}
				if err := sub.SetPendingLimits(-1, -1); err != nil { // no event is dropped
					b.Fatal(err)
				}
				if err := o.Flush(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := conn.PublishMsg(m); err != nil {
					b.Fatal(err)
				}
			}
			read.Wait()
			b.ReportMetric(float64(m.Size()), "bytes/event")
		})
	}
}
