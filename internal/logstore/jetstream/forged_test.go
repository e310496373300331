package jetstream_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	native "github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
)

// forgeries are messages to the inbox of an acknowledgement, none of them by the
// stream of the append. The second is what the verb `events` answers.
var forgeries = []string{
	``, `{}`, `{"events":[{"v":1,"id":"r.root#1.0","seq":7}],"cursor":{},"more":false}`, `"seq":7`, `{"seq":7}`, `{"stream":"","seq":7}`,
	`{"stream":"TROUPE_BOX_OTHER_0","seq":7}`, `{"stream":"troupe_box_a_0","seq":7}`, `{"stream":"TROUPE_BOX_A_0","seq":0}`, `{"stream":"TROUPE_BOX_A_0","seq":-1}`,
	`{"stream":"TROUPE_BOX_A_0","seq":7.5}`, `{"stream":"TROUPE_BOX_A_0","seq":"7"}`, `{"stream":"TROUPE_BOX_A_0","seq":18446744073709551616}`,
	`{"stream":"TROUPE_BOX_A_0","seq":7`, `{"stream":"TROUPE_BOX_A_0","seq":7}x`, `{"stream":"TROUPE_BOX_A_0","seq":7}{}`, `{"stream":"TROUPE_BOX_A_0","seq":+7}`,
	`{"stream":"TROUPE_BOX_A_0","seq":07}`, `{"stream":"TROUPE_BOX_A_0","seq":}`, `[{"stream":"TROUPE_BOX_A_0","seq":7}]`,
	`{"stream":"TROUPE_BOX_A_0","seq":7,"duplicate":true}`, `{"stream":"TROUPE_BOX_A_0","seq":7,"batch":"b","count":1}`, `{"stream":"TROUPE_BOX_A_0","seq":7,"more":1}`,
	`{"stream":"TROUPE_BOX_A_0","domain":"hub","seq":7}`, `{"stream":"TROUPE_BOX_A_0","seq":7,"domain":"hub"}`,
	`{"error":"no","code":"404","hint":""}`, `{"error":{"code":400,"err_code":10060,"description":"x"}}`, `{"error":{"code":400,"err_code":10060,"description":"x"},"stream":"OTHER","seq":0}`,
	`{"error":{"code":200,"err_code":10060},"stream":"TROUPE_BOX_A_0","seq":0}`, `{"error":{"code":400,"err_code":1},"stream":"TROUPE_BOX_A_0","seq":0}`,
	`{"error":{"code":400,"err_code":10060},"stream":"TROUPE_BOX_A_0","seq":7}`, `{"error":{},"stream":"TROUPE_BOX_A_0","seq":0}`, `+OK`, "\x00", `null`, `7`,
}

// TestAttackForgedAckIsIgnored: the stream of an append is away, so no entry is
// stored, and each role sends what resembles an acknowledgement to the very inbox
// that waits for it. The append waits on, and ends with the truth once the stream
// is back.
func TestAttackForgedAckIsIgnored(t *testing.T) {
	e, nc := serveTest(t)
	p := openPost(t, nc, jetstream.Config{Pool: "a", Shards: 1, Streams: 1, BytesMax: 64 << 20, RetryAfter: 200 * time.Millisecond})
	js, err := native.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	const name = "TROUPE_BOX_A_0"
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	if err := js.DeleteStream(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	spied, err := nc.SubscribeSync(names.Names{}.AllBoxes())
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		place uint64
		err   error
	}
	got := make(chan answer, 1)
	p.Append(t.Context(), "run.agent", []byte("entry"), func(place uint64, err error) { got <- answer{place, err} })
	m, err := spied.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []bus.Role{bus.RoleObserver, bus.RoleClient, bus.RoleService, bus.RoleNode} {
		sendForgeries(t, e, role, m.Reply, name)
	}
	if err := nc.Flush(); err != nil { // what was forged is on its way to the appender
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	select {
	case a := <-got:
		if a.err != nil || a.place != 1 {
			t.Errorf("a forged acknowledgement was taken: %d, %v", a.place, a.err)
		}
	case <-time.After(patience):
		t.Fatal("the append does not end")
	}
	if all := storedEntries(t, p, "run.agent"); len(all) == 0 || all[0] != "entry" {
		t.Errorf("acknowledged, and not stored: %q", all)
	}
	if n := p.ForgedAcks(); n < uint64(len(forgeries)) {
		t.Errorf("%d messages were counted, want %d at least", n, len(forgeries))
	}
}

// sendForgeries sends all forgeries to an inbox, and true acknowledgements to tokens beside.
func sendForgeries(t *testing.T, e *embedded.Server, role bus.Role, inbox, stream string) {
	t.Helper()
	nc, err := e.Connect(role, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	send := func(subject, data string) {
		if err := nc.Publish(subject, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	for _, data := range forgeries {
		send(inbox, data)
	}
	if role != bus.RoleNode {
		send(inbox, `{"stream":"`+stream+`","seq":7}`) // it may not publish there
	}
	parent := inbox[:len(inbox)-1]
	for _, token := range []string{"2", "zzzz", "01", "0", "-1", "Z"} {
		send(parent+token, `{"stream":"`+stream+`","seq":7}`)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}
