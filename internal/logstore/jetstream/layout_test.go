package jetstream_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	native "github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

func TestLayout(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, quickConfig())
	putEntry(t, p, "run.a", "x")
	js := serverAPI(t, nc)
	s, err := js.Stream(t.Context(), "TROUPE_BOX_DEFAULT_1")
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	if !c.DenyDelete || c.AllowDirect || c.Discard != native.DiscardNew || c.MaxMsgSize != mailbox.EntryBytesMax ||
		!slices.Equal(c.Subjects, []string{"troupe.box.default.1.*.*", "troupe.box.default.3.*.*"}) {
		t.Errorf("%+v", c)
	}
	// The same again is fine; other numbers are not.
	openPost(t, nc, quickConfig())
	for name, change := range map[string]func(*jetstream.Config){
		"shards":  func(c *jetstream.Config) { c.Shards = 8 },
		"streams": func(c *jetstream.Config) { c.Streams = 4 },
	} {
		cfg := quickConfig()
		change(&cfg)
		_, err := jetstream.Open(t.Context(), nc, cfg)
		if !errors.Is(err, jetstream.ErrLayout) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.Subjects = c.Subjects[:1] // what is sent to the other is lost
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := jetstream.Open(t.Context(), nc, quickConfig()); !errors.Is(err, jetstream.ErrLayout) || !strings.Contains(err.Error(), "holds troupe.box.default.1.*.*,") {
		t.Errorf("a subject less: %v", err)
	}
	c.Subjects = append(c.Subjects, "troupe.box.default.3.*.*")
	c.AllowDirect = true
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := jetstream.Open(t.Context(), nc, quickConfig()); !errors.Is(err, jetstream.ErrLayout) {
		t.Errorf("direct reads: %v", err)
	}
}

func TestBadConfig(t *testing.T) {
	_, nc := serveTest(t)
	for name, cfg := range map[string]jetstream.Config{
		"pool":              {Pool: "a.b"},
		"no streams":        {Shards: 4},
		"more than shards":  {Shards: 4, Streams: 5},
		"more than we have": {Pool: "huge", BytesMax: 1 << 50},
	} {
		if _, err := jetstream.Open(t.Context(), nc, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	_, err := jetstream.Open(t.Context(), nc, jetstream.Config{Pool: "huge", BytesMax: 1 << 50})
	if !errors.Is(err, mailbox.ErrFull) {
		t.Error(err)
	}
}

func TestBadAddress(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, quickConfig())
	for _, at := range []mailbox.Address{"", "run", "run.", ".a", "run.*", "run.>", "run.a.b", "Run.a", "run.a b"} {
		if err := tryPut(t, p, t.Context(), at, "x"); !errors.Is(err, names.ErrToken) {
			t.Errorf("append %q: %v", at, err)
		}
		if err := p.Read(t.Context(), at, 0, 0, nil); !errors.Is(err, names.ErrToken) {
			t.Errorf("read %q: %v", at, err)
		}
		if err := p.Purge(t.Context(), at, 0); !errors.Is(err, names.ErrToken) {
			t.Errorf("purge %q: %v", at, err)
		}
	}
	if _, err := p.Addresses(t.Context(), "*"); !errors.Is(err, names.ErrToken) {
		t.Error(err)
	}
	if err := p.ReadRun(t.Context(), "*", nil); !errors.Is(err, names.ErrToken) {
		t.Error(err)
	}
}

// TestForeignEntries: entries by other hands come as they are, headers and all,
// but a subject that is nobody's log is nobody's mail.
func TestForeignEntries(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, quickConfig())
	l := openTail(t, p)
	js := serverAPI(t, nc)
	right := names.Names{}.ShardSubjects("default", mailbox.Shard("run.a", 4))
	right = strings.Replace(right, "*.*", "run.a", 1)
	wrong := fmt.Sprintf("troupe.box.default.%d.run.a", (mailbox.Shard("run.a", 4)+1)%4)
	for _, m := range []*nats.Msg{
		{Subject: wrong, Data: []byte("astray")},
		// What the server's own messages look like.
		{Subject: right, Header: nats.Header{"Status": {"100"}, "Description": {"Idle Heartbeat"}}},
		{Subject: right, Header: nats.Header{"Status": {"409"}}, Data: []byte("x")},
		{Subject: right, Data: []byte("\xdd\xff\xff\xff\xff")},
	} {
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	putEntry(t, p, "run.a", "last")
	l.awaitEntries(t, 4)
	want := []string{"", "x", "\xdd\xff\xff\xff\xff", "last"}
	if got := storedEntries(t, p, "run.a"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	l.compareStore(t, p)
	if got, err := p.Addresses(t.Context(), ""); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestReaderUsesItsOwnConnection(t *testing.T) {
	e, nc := serveTest(t)
	cfg := quickConfig()
	cfg.Reader = dialServer(t, e)
	p := openPost(t, nc, cfg)
	l := openTail(t, p)
	for i := range 100 {
		putEntry(t, p, "run.a", fmt.Sprint(i))
	}
	l.awaitEntries(t, 100)
	l.compareStore(t, p)
}

// TestPurgedWhileReading: a read of a log that goes away ends.
func TestPurgedWhileReading(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, quickConfig())
	for range 300 {
		putEntry(t, p, "run.a", strings.Repeat("x", 30_000))
	}
	seen := 0
	err := p.Read(t.Context(), "run.a", 0, 0, func(mailbox.Message) error {
		if seen++; seen == 1 {
			return p.Purge(t.Context(), "run.a", 0)
		}
		return nil
	})
	if err != nil || seen == 0 || seen > 300 {
		t.Errorf("%d, %v", seen, err)
	}
}
