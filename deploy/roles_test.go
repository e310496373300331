// Package deploy_test holds the files of this folder against a real server.
package deploy_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/node"
)

const patience = 60 * time.Second

// testSite is a server with the roles of nats/troupe.conf, and the seed of each.
type testSite struct {
	t         *testing.T
	url       string
	seeds     map[string]string // path, by role
	observers string            // the URL of their server
}

var roles = []string{"setup", "node", "service", "client", "alice", "bob", "observer", "system"}

func startSite(t *testing.T) *testSite {
	t.Helper()
	s := &testSite{t: t, seeds: map[string]string{}}
	dir := t.TempDir()
	for _, role := range roles {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		seed, err := pair.Seed()
		if err != nil {
			t.Fatal(err)
		}
		s.seeds[role] = filepath.Join(dir, role+".nk")
		if err := os.WriteFile(s.seeds[role], seed, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TROUPE_"+strings.ToUpper(role)+"_NKEY", public)
	}
	opts, err := server.ProcessConfigFile("nats/troupe.conf")
	if err != nil {
		t.Fatal(err)
	}
	opts.Host, opts.Port, opts.NoSigs, opts.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	opts.JetStream, opts.StoreDir, opts.SyncAlways = true, t.TempDir(), true
	opts.LeafNode = server.LeafNodeOpts{Host: "127.0.0.1", Port: server.RANDOM_PORT}
	srv, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	if !srv.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	s.url = srv.ClientURL()
	s.startObservers(dir, opts.LeafNode.Port)
	return s
}

// tlsBlock is what the site, on loopback, does not have.
var tlsBlock = regexp.MustCompile(`tls \{[^}]*\}`)

// startObservers starts the server of observers, and waits until the site has it.
func (s *testSite) startObservers(dir string, port int) {
	seed, err := os.ReadFile(s.seeds["observer"])
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Setenv("TROUPE_OBSERVER_SEED", string(seed))
	s.t.Setenv("NAME", "o1")
	s.t.Setenv("LEAF_URL", "nats://127.0.0.1:"+strconv.Itoa(port))
	srv := startServer(s.t, loadConfig(s.t, "observers.conf", dir, tlsBlock))
	s.observers = srv.ClientURL()
	for end := time.Now().Add(patience); srv.NumLeafNodes() == 0; runtime.Gosched() {
		if time.Now().After(end) {
			s.t.Fatal("the server of observers does not reach the site")
		}
	}
}

func (s *testSite) connectOptions(role string) bus.Options {
	if role == "observer" {
		return bus.Options{Servers: s.observers, NKey: s.seeds[role]}
	}
	o := bus.Options{Servers: s.url, NKey: s.seeds[role]}
	if role == "alice" || role == "bob" {
		o.As = role
	}
	return o
}

// isAllowed reports whether a role may publish, or subscribe, to a subject.
func (s *testSite) isAllowed(role, what, subject string) bool {
	s.t.Helper()
	denied := make(chan error, 4)
	o := s.connectOptions(role)
	o.Extra = []nats.Option{nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err })}
	nc, err := bus.Connect(o)
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	if what == "publish" {
		err = nc.Publish(subject, []byte("{}"))
	} else {
		_, err = nc.SubscribeSync(subject)
	}
	if err == nil {
		err = nc.Flush() // the server has said what it has to say
	}
	if err != nil && !errors.Is(err, nats.ErrPermissionViolation) {
		s.t.Fatal(err)
	}
	select {
	case <-denied:
		return false
	default:
		return nc.LastError() == nil
	}
}

// subjectRights says for each subject who may publish to it and who may subscribe.
var subjectRights = []struct{ what, subject, who string }{
	{"publish", "troupe.box.default.0.run.root", "node"},
	{"subscribe", "troupe.box.default.0.run.root", ""},
	{"subscribe", "troupe.box.>", ""},
	{"publish", "troupe.evt.run.root.turn.started", "node"},
	{"subscribe", "troupe.evt.>", "node client alice bob observer"},
	{"publish", "troupe.content.run.root.turn.started", "node"},
	{"subscribe", "troupe.content.>", "node client"},
	{"publish", "troupe.cmd.run", "node client"},
	{"subscribe", "troupe.cmd.run", "service"},
	{"publish", "troupe.cmd.as.alice.run", "node client alice"},
	{"publish", "troupe.cmd.as.bob.run.host-rack7", "node client bob"},
	{"publish", "troupe.cmd.as.carol.run", "node client"},
	{"subscribe", "troupe.cmd.as.alice.run", "service"},
	{"publish", "troupe.trigger.alice.push", "client alice"},
	{"publish", "troupe.trigger.bob", "client bob"},
	{"publish", "_INBOX_client_alice.x", "service"},
	{"subscribe", "_INBOX_client_alice.x", "alice"},
	{"subscribe", "_INBOX_client_bob.x", "bob"},
	{"publish", "troupe.trigger.deploys", "client"},
	{"subscribe", "troupe.trigger.deploys", ""},
	{"publish", "$JS.API.CONSUMER.CREATE.TROUPE_TRIGGERS.s.troupe.trigger.deploys", "setup node"},
	{"publish", "$JS.API.CONSUMER.MSG.NEXT.TROUPE_TRIGGERS.s", "setup node"},
	{"publish", "troupe.answer.run", "client"},
	{"subscribe", "troupe.answer.run", ""},
	{"publish", "troupe.stored.run", ""},
	{"subscribe", "troupe.stored.run", "client"},
	{"publish", "$KV.troupe_shards.default.0", "node"},
	{"publish", "$KV.troupe_nodes.n", "setup node"},
	{"publish", "$KV.troupe_runs.run", "setup node"},
	{"publish", "$KV.troupe_gates.a.b", "node"},
	{"publish", "$O.troupe_blobs.M.run", "node"},
	{"subscribe", "$KV.>", ""},
	{"publish", "$JS.API.INFO", "setup node"},
	{"publish", "$JS.API.STREAM.INFO.TROUPE_BOX_DEFAULT_0", "setup node"},
	{"publish", "$JS.API.STREAM.MSG.GET.TROUPE_BOX_DEFAULT_0", "setup node"},
	{"publish", "$JS.API.DIRECT.GET.TROUPE_BOX_DEFAULT_0", "setup"},
	{"publish", "$JS.API.CONSUMER.CREATE.TROUPE_BOX_DEFAULT_0.x", "setup node"},
	{"publish", "$JS.API.STREAM.CREATE.X", "setup"},
	{"publish", "$JS.API.STREAM.UPDATE.TROUPE_BOX_DEFAULT_0", "setup"},
	{"publish", "$JS.API.STREAM.DELETE.TROUPE_BOX_DEFAULT_0", "setup"},
	{"publish", "$JS.API.STREAM.PURGE.TROUPE_BOX_DEFAULT_0", "setup node"},
	{"publish", "$JS.API.STREAM.SNAPSHOT.TROUPE_BOX_DEFAULT_0", "setup"},
	{"publish", "$JS.API.STREAM.RESTORE.TROUPE_BOX_DEFAULT_0", "setup"},
	{"publish", "$JS.API.STREAM.MSG.DELETE.TROUPE_BOX_DEFAULT_0", "setup"},
	{"publish", "$SYS.REQ.SERVER.PING.VARZ", "system"},
	{"publish", "$SYS.REQ.SERVER.PING", ""},
	{"publish", "$SYS.REQ.SERVER.X.RELOAD", ""},
	{"publish", "$SYS.REQ.ACCOUNT.PING.CONNZ", ""},
	{"subscribe", "$SYS.>", ""},
	{"subscribe", "_INBOX_system.x", "system"},
	{"publish", "$SRV.PING", "client"},
	{"subscribe", "$SRV.PING", "service"},
	{"publish", "agents.prompt.troupe.o.n", "node client"},
	{"subscribe", "agents.prompt.troupe.o.n", "service"},
	{"publish", "agents.query.troupe.o.x", "node client"},
	{"subscribe", "agents.query.troupe.o.x", "service"},
	{"publish", "agents.hb.troupe.o.n", "service"},
	{"subscribe", "agents.hb.>", "node service client alice bob observer"},
	{"publish", "_INBOX.x", "node"},
	{"publish", "_INBOX_client.x", "service"},
	{"publish", "_INBOX_client_node.x", "service"},
	{"publish", "_INBOX_node.x", ""},
	{"subscribe", "_INBOX_client_node.x", "node"},
	{"subscribe", "_INBOX_client.x", "client"},
	{"subscribe", "_INBOX_node.x", "node"},
	{"subscribe", "_INBOX_setup.x", "setup"},
	{"subscribe", "_INBOX_service.x", "service"},
	{"subscribe", "_INBOX.x", ""},
	{"publish", "anything.else", ""},
	{"subscribe", ">", ""},
}

// TestRolesHaveLeastPrivilege is the matrix of roles and
// subjects: for each subject, who may publish to it and who may subscribe.
func TestRolesHaveLeastPrivilege(t *testing.T) {
	s := startSite(t)
	for _, row := range subjectRights {
		for _, role := range roles {
			want := strings.Contains(" "+row.who+" ", " "+role+" ")
			if got := s.isAllowed(role, row.what, row.subject); got != want {
				t.Errorf("%s may %s %s: %t, want %t", role, row.what, row.subject, got, want)
			}
		}
	}
}

// TestACompleteSite: setup makes what is needed, a node with a proof of the server's durability and without any right to
// make or change streams runs on it, a client starts a run and deletes it, and an observer sees it.
func TestACompleteSite(t *testing.T) {
	s := startSite(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	trusted := t.TempDir()
	cfg := node.Config{Name: "n1", Trust: []string{trusted}, Bus: s.connectOptions("node"), ServiceBus: bus.Options{NKey: s.seeds["service"]}, System: bus.Options{NKey: s.seeds["system"]}, Profile: bus.ServerSync, ResumeAll: true,
		Env: func(string) string { return "" }}
	soon, enough := context.WithTimeout(ctx, 2*time.Second)
	defer enough()
	if _, err := node.Start(soon, cfg); !errors.Is(err, node.ErrDenied) {
		t.Fatalf("a node without streams, and without the right to make them: %v", err)
	}
	if err := node.SetupServer(ctx, node.Config{Bus: s.connectOptions("setup")}, 1); err != nil {
		t.Fatal(err)
	}
	h, err := node.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := bus.Connect(bus.Options{Servers: s.url, NKey: s.seeds["observer"]}); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("an observer at the servers that have the logs: %v", err)
	}
	watcher, err := bus.Connect(s.connectOptions("observer"))
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	ended, err := watcher.SubscribeSync("troupe.evt.*.super.run.finished")
	if err != nil {
		t.Fatal(err)
	}
	if err := watcher.Flush(); err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(s.connectOptions("client"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	path := filepath.Join(trusted, "model.yaml")
	if err := os.WriteFile(path, []byte("default: [{text: hello}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := client.NewID()
	if _, err := c.Run(ctx, client.RunRequest{RunID: id, Prompt: "Say hello", Model: "script/" + path}); err != nil {
		t.Fatal(err)
	}
	info, err := c.Wait(ctx, id)
	if err != nil || info.Result == nil || info.Result.Reason != spec.Completed || info.Result.Text != "hello" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := ended.NextMsgWithContext(ctx); err != nil {
		t.Errorf("the observer saw no end: %v", err)
	}
	if d, err := c.Delete(ctx, id); err != nil || d.Agents != 1 {
		t.Errorf("a node deletes a run with %+v, %v", d, err)
	}
	checkPrune(ctx, t, c, "script/"+path)
	s.beginByMessage(ctx, c, "script/"+path)
}

// checkPrune checks that a node may prune a run.
func checkPrune(ctx context.Context, t *testing.T, c *client.Client, model string) {
	t.Helper()
	old := client.NewID()
	if _, err := c.Run(ctx, client.RunRequest{RunID: old, Prompt: "Say hello", Model: model}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(ctx, old); err != nil {
		t.Fatal(err)
	}
	if p, err := c.Prune(ctx, client.PruneRequest{}); err != nil || !slices.Equal(p.Runs, []string{old}) {
		t.Errorf("a node prunes a run with %+v, %v", p, err)
	}
}

// TestTriggersNeedTheirStream: on a site that was set up before there were triggers, a schedule of one is refused with the remedy.
func TestTriggersNeedTheirStream(t *testing.T) {
	s := startSite(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := node.SetupServer(ctx, node.Config{Bus: s.connectOptions("setup")}, 1); err != nil {
		t.Fatal(err)
	}
	o := s.connectOptions("setup")
	o.InboxPrefix = "_INBOX_setup"
	nc, err := bus.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.DELETE.TROUPE_TRIGGERS", nil); err != nil {
		t.Fatal(err)
	}
	h, err := node.Start(ctx, node.Config{Name: "n1", Bus: s.connectOptions("node"), ServiceBus: bus.Options{NKey: s.seeds["service"]}, System: bus.Options{NKey: s.seeds["system"]}, Profile: bus.ServerSync, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := client.Dial(s.connectOptions("client"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Run(ctx, client.RunRequest{RunID: "deploys", Prompt: "Say hello", Model: "builtin/scout", On: "deploys"})
	if refused := (*client.Error)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "troupe-node --setup") {
		t.Errorf("a trigger without its stream: %v", err)
	}
}

// beginByMessage has a message of the role client begin a run.
func (s *testSite) beginByMessage(ctx context.Context, c *client.Client, model string) {
	s.t.Helper()
	watcher, err := bus.Connect(s.connectOptions("observer"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer watcher.Close()
	fired, err := watcher.SubscribeSync("troupe.evt._cluster.*.schedule.fired")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := watcher.Flush(); err != nil {
		s.t.Fatal(err)
	}
	if _, err := c.Run(ctx, client.RunRequest{RunID: "deploys", Prompt: "Say hello", Model: model, On: "deploys"}); err != nil {
		s.t.Fatal(err)
	}
	o := s.connectOptions("client")
	o.InboxPrefix = bus.InboxPrefix(bus.RoleClient)
	nc, err := bus.Connect(o)
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	// A message names the subject of its acknowledgement, which the server would write there whatever the client may do.
	before := s.countStored(ctx, "TROUPE_BOX_DEFAULT_0", "troupe.box.default.0.forged.root")
	for _, reply := range []string{"troupe.box.default.0.forged.root", "$KV.troupe_shards.forged", "$KV.troupe_runs.forged"} {
		if err := nc.PublishRequest("troupe.trigger.deploys", reply, []byte("shop 1.2")); err != nil {
			s.t.Fatal(err)
		}
		if _, err := fired.NextMsgWithContext(ctx); err != nil {
			s.t.Errorf("no run began: %v", err)
		}
	}
	for stream, subject := range map[string]string{"TROUPE_BOX_DEFAULT_0": "troupe.box.default.0.forged.root", "KV_troupe_shards": "$KV.troupe_shards.forged", "KV_troupe_runs": "$KV.troupe_runs.forged"} {
		if n := s.countStored(ctx, stream, subject); n != before {
			s.t.Errorf("a client has written %d messages on %s", n, subject)
		}
	}
	if err := (client.Schedules{Client: c}).Delete(ctx, "deploys"); err != nil {
		s.t.Errorf("the schedule was not deleted: %v", err)
	}
}

// countStored counts the messages of a subject in a stream.
func (s *testSite) countStored(ctx context.Context, stream, subject string) uint64 {
	s.t.Helper()
	o := s.connectOptions("setup")
	o.InboxPrefix = "_INBOX_setup"
	nc, err := bus.Connect(o)
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		s.t.Fatal(err)
	}
	found, err := js.Stream(ctx, stream)
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := found.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		s.t.Fatal(err)
	}
	return info.State.Subjects[subject]
}
