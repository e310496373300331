package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/test/leaks"
)

// holdDir makes the test binary a process that owns a state directory until it
// is killed.
const holdDir = "TROUPE_TEST_HOLD_DIR"

// children are what the test binary is instead, by the variable that names a directory.
var children = map[string]func(dir string) error{}

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdDir); dir != "" {
		holdStateDir(dir)
		return
	}
	for name, child := range children {
		if dir := os.Getenv(name); dir != "" {
			if err := child(dir); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			return
		}
	}
	leaks.Main(m)
}

func holdStateDir(dir string) {
	e, err := embedded.Start(embedded.Config{StateDir: dir, Port: embedded.FreePort})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("holding", e.URL())
	select {}
}

func startServer(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	if cfg.StateDir == "" {
		cfg.StateDir = t.TempDir()
	}
	e, err := embedded.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// trackClosing makes the end of a test wait until a connection's goroutines are gone.
func trackClosing(t *testing.T) (nats.Option, func(*nats.Conn)) {
	ended := make(chan struct{})
	return nats.ClosedHandler(func(*nats.Conn) { close(ended) }), func(nc *nats.Conn) {
		t.Cleanup(func() {
			nc.Close()
			<-ended
		})
	}
}

func connectAs(t *testing.T, e *embedded.Server, role bus.Role, options ...nats.Option) *nats.Conn {
	t.Helper()
	closed, register := trackClosing(t)
	nc, err := e.Connect(role, append(options, closed)...)
	if err != nil {
		t.Fatal(err)
	}
	register(nc)
	return nc
}

func mustConnect(t *testing.T, o bus.Options) *nats.Conn {
	t.Helper()
	closed, register := trackClosing(t)
	o.Extra = append(o.Extra, closed)
	nc, err := bus.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	register(nc)
	return nc
}

// violations collects what the server refuses a connection.
type violations chan error

func (v violations) errorHandler() nats.Option {
	return nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { v <- err })
}

// wasRefused reports whether the server refused what nc did last. Errors come
// before the answer to a ping, and are handed over in order.
func (v violations) wasRefused(t *testing.T, nc *nats.Conn) bool {
	t.Helper()
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	// The handler runs in another goroutine, in order: an error of our own
	// making behind the server's tells when all have come.
	if err := nc.Publish("fence.not.allowed.to.anybody", nil); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	refused := false
	for {
		select {
		case err := <-v:
			if strings.Contains(err.Error(), "fence.not.allowed") {
				return refused
			}
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Fatalf("unexpected: %v", err)
			}
			refused = true
		case <-time.After(30 * time.Second):
			t.Fatal("the server said nothing")
		}
	}
}

// may is who may do what: p publish, s subscribe. Anyone is who connects without a
// credential where the verbs were opened, and quiet where only events were.
var may = []struct {
	subject                                  string
	service, client, observer, anyone, quiet string
}{
	{"troupe.box.default.3.run.root", "", "", "", "", ""},
	{"troupe.box.>", "", "", "", "", ""},
	{"$KV.troupe_shards.default.3", "", "", "", "", ""},
	{"$O.troupe_blobs.C.x", "", "", "", "", ""},
	{"$JS.API.INFO", "", "", "", "", ""},
	{"$JS.API.STREAM.INFO.TROUPE_BOX_DEFAULT_0", "", "", "", "", ""},
	{"$JS.API.STREAM.PURGE.TROUPE_BOX_DEFAULT_0", "", "", "", "", ""},
	{"$JS.API.STREAM.DELETE.TROUPE_BOX_DEFAULT_0", "", "", "", "", ""},
	{"$JS.API.CONSUMER.CREATE.TROUPE_BOX_DEFAULT_0", "", "", "", "", ""},
	{"$JS.API.STREAM.MSG.GET.TROUPE_BOX_DEFAULT_0", "", "", "", "", ""},
	{"$JS.API.DIRECT.GET.KV_troupe_shards", "", "", "", "", ""},
	{"$JS.ACK.x", "", "", "", "", ""},
	{"$JS.FC.x", "", "", "", "", ""},
	{"$JS.EVENT.ADVISORY.>", "", "", "", "", ""},
	{"$SYS.REQ.SERVER.PING", "", "", "", "", ""},
	{"troupe.evt.run.root.turn.started", "", "s", "s", "s", "s"},
	{"troupe.evt.>", "", "s", "s", "s", "s"},
	{"troupe.content.run.root.turn.started", "", "s", "", "s", ""},
	{"troupe.content.>", "", "s", "", "s", ""},
	{"troupe.cmd.run", "s", "p", "", "p", ""},
	{"troupe.cmd.drain", "s", "p", "", "p", ""},
	{"troupe.cmd.delete", "s", "p", "", "", ""},
	{"troupe.cmd.prune", "s", "p", "", "", ""},
	{"agents.prompt.troupe.me.coder", "s", "p", "", "p", ""},
	{"agents.hb.troupe.me.coder", "ps", "s", "s", "s", "s"},
	{"$SRV.PING", "s", "p", "", "p", ""},
	{"$SRV.INFO.troupe", "s", "p", "", "p", ""},
	{"_INBOX.abc.1", "", "", "", "s", ""},
	{"_INBOX_client.abc.1", "p", "s", "", "", ""},
	{"_INBOX_node.abc.1", "", "", "", "", ""},
	{"_INBOX_client_node.abc.1", "p", "", "", "", ""},
	{"_INBOX_service.abc.1", "s", "", "", "", ""},
	{"other", "", "", "", "", ""},
	{">", "", "", "", "", ""},
	{"*", "", "", "", "", ""},
	{"troupe.>", "", "", "", "", ""},
}

func TestPermissions(t *testing.T) {
	e := startServer(t, embedded.Config{DontListen: true})
	open := startServer(t, embedded.Config{Port: embedded.FreePort, OpenControl: true})
	quiet := startServer(t, embedded.Config{Port: embedded.FreePort, OpenWatch: true})
	as := func(role bus.Role) func(*testing.T, nats.Option) *nats.Conn {
		return func(t *testing.T, said nats.Option) *nats.Conn { return connectAs(t, e, role, said) }
	}
	nobody := func(e *embedded.Server) func(*testing.T, nats.Option) *nats.Conn {
		return func(t *testing.T, said nats.Option) *nats.Conn {
			return mustConnect(t, bus.Options{Servers: e.URL(), Extra: []nats.Option{said}})
		}
	}
	for _, who := range []struct {
		name string
		dial func(*testing.T, nats.Option) *nats.Conn
		rule func(i int) string
	}{
		{"service", as(bus.RoleService), func(i int) string { return may[i].service }},
		{"client", as(bus.RoleClient), func(i int) string { return may[i].client }},
		{"observer", as(bus.RoleObserver), func(i int) string { return may[i].observer }},
		{"anyone where control is open", nobody(open), func(i int) string { return may[i].anyone }},
		{"anyone where watching is open", nobody(quiet), func(i int) string { return may[i].quiet }},
	} {
		t.Run(who.name, func(t *testing.T) {
			said := make(violations, 16)
			nc := who.dial(t, said.errorHandler())
			for i, row := range may {
				if got := probeSubject(t, nc, said, row.subject); got != who.rule(i) {
					t.Errorf("%s: allowed %q, want %q", row.subject, got, who.rule(i))
				}
			}
		})
	}
	// The node may do all of it: everything else in this repository shows that.
	if err := bus.CheckJetStream(t.Context(), connectAs(t, e, bus.RoleNode)); err != nil {
		t.Error(err)
	}
}

// probeSubject tries a subject.
func probeSubject(t *testing.T, nc *nats.Conn, said violations, subject string) string {
	t.Helper()
	got := ""
	// A wildcard is nothing that can be published to.
	if !strings.ContainsAny(subject, "*>") {
		if err := nc.Publish(subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if !said.wasRefused(t, nc) {
			got += "p"
		}
	}
	sub, err := nc.SubscribeSync(subject)
	if err != nil {
		t.Fatal(err)
	}
	if !said.wasRefused(t, nc) {
		got += "s"
	}
	if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrBadSubscription) {
		t.Fatal(err)
	}
	return got
}

// TestRequestCannotDirectItsAnswerIntoALog: a client asks for an answer on a subject that only the
// node may write. The service must not be its tool.
func TestRequestCannotDirectItsAnswerIntoALog(t *testing.T) {
	e := startServer(t, embedded.Config{DontListen: true})
	node := connectAs(t, e, bus.RoleNode)
	heard, err := node.SubscribeSync("troupe.box.>")
	if err != nil {
		t.Fatal(err)
	}
	said := make(violations, 16)
	service := connectAs(t, e, bus.RoleService, said.errorHandler())
	answered := make(chan struct{})
	_, err = service.Subscribe("troupe.cmd.list", func(m *nats.Msg) {
		if err := m.Respond([]byte("{}")); err != nil {
			t.Error(err)
		}
		close(answered)
	})
	if err = errors.Join(err, service.Flush(), node.Flush()); err != nil {
		t.Fatal(err)
	}
	client := connectAs(t, e, bus.RoleClient)
	if err := client.PublishRequest("troupe.cmd.list", "troupe.box.default.0.run.root", nil); err != nil {
		t.Fatal(err)
	}
	<-answered
	if !said.wasRefused(t, service) {
		t.Error("the service may publish to a log")
	}
	if err := node.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := heard.Pending(); n != 0 {
		t.Error("the answer is in the log")
	}
	// An honest request is answered.
	_, err = service.Subscribe("troupe.cmd.get", func(m *nats.Msg) {
		if err := m.Respond([]byte("{}")); err != nil {
			t.Error(err)
		}
	})
	if err = errors.Join(err, service.Flush()); err != nil {
		t.Fatal(err)
	}
	for _, role := range []bus.Role{bus.RoleClient} {
		if _, err := connectAs(t, e, role).Request("troupe.cmd.get", nil, patience); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
}

func TestNodeFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, _, err := bus.JoinOwner(dir); !errors.Is(err, statedir.ErrNoServer) {
		t.Fatal(err)
	}
	e := startServer(t, embedded.Config{StateDir: dir, Port: embedded.FreePort})
	path := filepath.Join(dir, "node.json")
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	closed, register := trackClosing(t)
	nc, n, err := bus.JoinOwner(dir, closed)
	if err != nil {
		t.Fatal(err)
	}
	register(nc)
	if n.Address != e.URL() || n.PID != os.Getpid() || n.User != "client" || n.Password == "" {
		t.Errorf("%+v", n)
	}
	if err := nc.Publish("troupe.cmd.list", nil); err != nil {
		t.Error(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := bus.CheckJetStream(soon, nc); !errors.Is(err, bus.ErrNoJetStream) {
		t.Errorf("a client asks JetStream: %v", err)
	}
	nc.Close()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("node.json after a clean stop: %v", err)
	}
	if _, _, err := bus.JoinOwner(dir); !errors.Is(err, statedir.ErrNoServer) {
		t.Error(err)
	}
}

func TestStateDirectoryHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	e := startServer(t, embedded.Config{StateDir: dir, DontListen: true})
	if _, err := embedded.Start(embedded.Config{StateDir: dir, DontListen: true}); !errors.Is(err, statedir.ErrOwned) {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	startServer(t, embedded.Config{StateDir: dir, DontListen: true})
}

// TestOwnerKilled: the lock of a process that was killed is free at once, and
// what it had acknowledged is there.
func TestOwnerKilled(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil || !strings.HasPrefix(string(line[:n]), "holding") {
		t.Fatalf("%s, %v", line[:n], err)
	}
	if _, err := embedded.Start(embedded.Config{StateDir: dir, DontListen: true}); !errors.Is(err, statedir.ErrOwned) {
		t.Errorf("while it lives: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	startServer(t, embedded.Config{StateDir: dir, DontListen: true})
}

func TestPortsOfTheEmbeddedServer(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	_, err = embedded.Start(embedded.Config{StateDir: t.TempDir(), Port: port})
	if !errors.Is(err, localserver.ErrStart) {
		t.Errorf("a port that is taken: %v", err)
	}
	// Whoever has the usual port: there is always one for us, on loopback only.
	for range 2 {
		e := startServer(t, embedded.Config{})
		if !strings.HasPrefix(e.URL(), "nats://127.0.0.1:") {
			t.Error(e.URL())
		}
		user, password := e.Credential(bus.RoleClient)
		mustConnect(t, bus.Options{Servers: e.URL(), User: user, Password: password})
	}
	e := startServer(t, embedded.Config{DontListen: true})
	if e.URL() != "" {
		t.Error(e.URL())
	}
	if _, err := statedir.ReadNodeFile(e.StateDir()); !errors.Is(err, statedir.ErrNoServer) {
		t.Error(err)
	}
}

func TestStoreMaxLimitsTheServer(t *testing.T) {
	e := startServer(t, embedded.Config{DontListen: true, StoreMax: 100 << 20})
	if e.StoreMax() != 100<<20 {
		t.Error(e.StoreMax())
	}
	e = startServer(t, embedded.Config{DontListen: true, StoreMax: 1 << 60})
	if most := e.StoreMax(); most <= 0 || most >= 1<<60 {
		t.Errorf("more than the disk: %d", most)
	}
	js, err := jetstream.New(connectAs(t, e, bus.RoleNode))
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "X", MaxBytes: e.StoreMax() + 1})
	if err == nil {
		t.Error("a stream larger than the store")
	}
}

// TestSmallStore: on a small disk everything still finds its place.
func TestSmallStore(t *testing.T) {
	e := startServer(t, embedded.Config{DontListen: true, Lazy: true, StoreMax: localserver.StoreMin})
	js, err := jetstream.New(connectAs(t, e, bus.RoleNode))
	if err != nil {
		t.Fatal(err)
	}
	logs, blobs := e.StoreShares()
	if logs <= 0 || blobs <= 0 {
		t.Fatalf("%d, %d", logs, blobs)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "LOGS", MaxBytes: logs}); err != nil {
		t.Error(err)
	}
	if _, err := bus.OpenBuckets(t.Context(), js, bus.BucketConfig{BlobBytesMax: blobs}); err != nil {
		t.Error(err)
	}
	_, err = embedded.Start(embedded.Config{StateDir: t.TempDir(), DontListen: true, StoreMax: localserver.StoreMin - 1})
	if !errors.Is(err, localserver.ErrStart) {
		t.Error(err)
	}
}

// TestAcknowledgedEntriesSurviveARestart: what was acknowledged is there after a restart.
func TestAcknowledgedEntriesSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	for round := range 2 {
		e := startServer(t, embedded.Config{StateDir: dir, DontListen: true})
		nc := connectAs(t, e, bus.RoleNode)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		kv, err := js.CreateOrUpdateKeyValue(context.Background(), jetstream.KeyValueConfig{Bucket: names.Names{}.ShardBucket()})
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			if _, err := kv.Put(t.Context(), "default.1", []byte("x")); err != nil {
				t.Fatal(err)
			}
		} else if got, err := kv.Get(t.Context(), "default.1"); err != nil || string(got.Value()) != "x" {
			t.Errorf("%v, %v", got, err)
		}
		nc.Close()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkStart is from nothing to the first answer of JetStream.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		e, err := embedded.Start(embedded.Config{StateDir: b.TempDir(), Port: embedded.FreePort})
		if err != nil {
			b.Fatal(err)
		}
		nc, err := e.Connect(bus.RoleNode)
		if err != nil {
			b.Fatal(err)
		}
		if err := bus.CheckJetStream(b.Context(), nc); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		nc.Close()
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
