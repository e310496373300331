package jetstream

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
)

// fromStore is a message as a consumer sends it.
func fromStore(consumer string, stream, seq int) *nats.Msg {
	at := mailbox.Address("run.a")
	return &nats.Msg{
		Subject: fmt.Sprintf("troupe.box.default.%d.%s", mailbox.Shard(at, 4), at),
		Reply:   fmt.Sprintf("$JS.ACK.TROUPE_BOX_DEFAULT_0.%s.1.%d.%d.1700000000123456789.0", consumer, stream, seq),
		Data:    fmt.Append(nil, stream),
	}
}

// TestReaderDeliversInOrderAndStopsAtAGap: a reader delivers what comes next and nothing else, and breaks at
// the first sign that something is missing.
func TestReaderDeliversInOrderAndStopsAtAGap(t *testing.T) {
	beat := func(last string) *nats.Msg {
		return &nats.Msg{Header: nats.Header{"Status": {"100"}, headerLastConsumer: {last}}}
	}
	for name, c := range map[string]struct {
		in     []*nats.Msg
		want   string
		broken bool
	}{
		"in order":        {[]*nats.Msg{fromStore("c", 5, 1), fromStore("c", 9, 2)}, "[5 9]", false},
		"a gap":           {[]*nats.Msg{fromStore("c", 5, 1), fromStore("c", 9, 3), fromStore("c", 10, 4)}, "[5]", true},
		"a gap at first":  {[]*nats.Msg{fromStore("c", 5, 2)}, "[]", true},
		"twice":           {[]*nats.Msg{fromStore("c", 5, 1), fromStore("c", 5, 1)}, "[5]", true},
		"too early":       {[]*nats.Msg{fromStore("c", 3, 1), fromStore("c", 5, 2)}, "[5]", false},
		"a heartbeat":     {[]*nats.Msg{fromStore("c", 5, 1), beat("1"), fromStore("c", 6, 2)}, "[5 6]", false},
		"a gap, told of":  {[]*nats.Msg{fromStore("c", 5, 1), beat("2"), fromStore("c", 6, 2)}, "[5]", true},
		"not to be read":  {[]*nats.Msg{{Subject: "x", Reply: "$JS.ACK.a.b"}}, "[]", true},
		"a domain's form": {[]*nats.Msg{withDomain(fromStore("c", 5, 1))}, "[5]", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := []uint64{}
			cfg := &Config{Logger: slog.New(slog.DiscardHandler), Names: names.Names{}}
			f := &follower{readers: &readers{cfg: cfg}, stream: &poolStream{pool: &streamPool{pools: &streamPools{cfg: cfg}, name: "default", shards: 4}}, next: 5, name: "c", broken: make(chan string, 1), done: make(chan struct{})}
			f.deliver = func(m mailbox.Message) bool {
				if m.At != 1700000000123 || m.To != "run.a" || string(m.Data) != fmt.Sprint(m.Place) {
					t.Errorf("%+v", m)
				}
				got = append(got, m.Place)
				return true
			}
			for _, m := range c.in {
				f.handleMessage("c", m)
			}
			f.handleMessage("another", fromStore("another", 100, len(got)+1))
			if fmt.Sprint(got) != c.want || (len(f.broken) > 0) != c.broken {
				t.Errorf("delivered %v, broken: %v", got, len(f.broken) > 0)
			}
		})
	}
}

// withDomain writes the reply subject as servers with a JetStream domain do.
func withDomain(m *nats.Msg) *nats.Msg {
	m.Reply = "$JS.ACK.hub.ABCDEF." + m.Reply[len("$JS.ACK."):] + ".token"
	return m
}

// TestTransientAppendErrorIsRetried: what the server could not take now it is sent again,
// for an earlier copy may be on its way still; what will not change is said.
func TestTransientAppendErrorIsRetried(t *testing.T) {
	from := newAcker("X", "")
	for data, want := range map[string]error{
		`{"error":{"code":503,"err_code":10008,"description":"temporarily unavailable"}}`: errLater,
		`{"error":{"code":429,"err_code":10167,"description":"too many requests"}}`:       errLater,
		`{"error":{"code":400,"err_code":10054,"description":"too large"}}`:               mailbox.ErrTooLarge,
		`{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}`:  mailbox.ErrFull,
		`{"error":{"code":400,"err_code":10060,"description":"other stream"}}`:            ErrRefused,
	} {
		data = strings.TrimSuffix(data, "}") + `,"stream":"X","seq":0}`
		if _, err := from.parseAck(&nats.Msg{Data: []byte(data)}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", data, err, want)
		}
	}
	if _, err := from.parseAck(&nats.Msg{Header: nats.Header{"Status": {"503"}}}); !errors.Is(err, errLater) {
		t.Errorf("no responders: %v", err)
	}
}
