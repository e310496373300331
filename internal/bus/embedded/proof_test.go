package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
)

const (
	patience = 60 * time.Second
	pause    = 10 * time.Millisecond // between two looks at what a test waits for
)

// testCluster is servers with an account for troupe and one for the system.
type testCluster struct {
	t       *testing.T
	servers []*server.Server
}

// startCluster starts as many servers as there are words on whether each syncs. More
// than one are a cluster. Somebody else may get a port before its server has it:
// then others are tried.
func startCluster(t *testing.T, synced ...bool) *testCluster {
	t.Helper()
	for range 5 {
		e := &testCluster{t: t, servers: launchServers(t, synced)}
		t.Cleanup(e.shutDown)
		if slices.ContainsFunc(e.servers, func(s *server.Server) bool { return !s.ReadyForConnections(patience / 2) }) {
			e.shutDown()
			continue
		}
		for _, s := range e.servers {
			account, err := s.LookupAccount("APP")
			if err == nil {
				err = account.EnableJetStream(map[string]server.JetStreamAccountLimits{"": {MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1}}, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return e
	}
	t.Fatal("the servers never come up")
	return nil
}

// shutDown shuts the servers down, which may be so already.
func (e *testCluster) shutDown() {
	for _, s := range e.servers {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// launchServers starts servers that are to be a cluster.
func launchServers(t *testing.T, synced []bool) (servers []*server.Server) {
	t.Helper()
	var routes []*url.URL
	var ports []int
	for range synced {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // a second time, if the test fails in between
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for n := range synced {
		app, sys := server.NewAccount("APP"), server.NewAccount("SYS")
		o := &server.Options{ServerName: fmt.Sprintf("s%d", n), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), SyncAlways: synced[n],
			Accounts: []*server.Account{app, sys}, SystemAccount: "SYS",
			Users: []*server.User{{Username: "app", Password: "app", Account: app}, {Username: "sys", Password: "sys", Account: sys}}}
		if len(synced) > 1 {
			o.Routes, o.Cluster = routes, server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[n]}
		}
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		servers = append(servers, s)
	}
	return servers
}

func (e *testCluster) connectUser(user string) *nats.Conn {
	e.t.Helper()
	nc, err := bus.Connect(bus.Options{Servers: e.servers[0].ClientURL(), User: user, Password: user})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(nc.Close)
	return nc
}

func (e *testCluster) monitorURLs() bus.MonitorURLs {
	var m bus.MonitorURLs
	for _, s := range e.servers {
		m = append(m, "http://"+s.MonitorAddr().String())
	}
	return m
}

// createStreams makes the buckets and one stream of logs, as soon as there is a leader.
func (e *testCluster) createStreams(replicas int, change func(*jetstream.StreamConfig)) *nats.Conn {
	e.t.Helper()
	nc := e.connectUser("app")
	js, err := jetstream.New(nc)
	if err != nil {
		e.t.Fatal(err)
	}
	log := jetstream.StreamConfig{Name: "TROUPE_BOX_DEFAULT_0", Subjects: []string{"troupe.box.default.0.>"}, Discard: jetstream.DiscardNew,
		DenyDelete: true, Replicas: replicas, MaxBytes: 1 << 20}
	if change != nil {
		change(&log)
	}
	for until := time.Now().Add(patience); ; <-time.After(pause) {
		_, err := bus.OpenBuckets(e.t.Context(), js, bus.BucketConfig{Replicas: replicas})
		if err == nil {
			_, err = js.CreateOrUpdateStream(e.t.Context(), log)
		}
		if err == nil {
			return nc
		}
		if time.Now().After(until) {
			e.t.Fatal(err)
		}
	}
}

func proveDurability(t *testing.T, cfg bus.ProofConfig) bus.Proof {
	t.Helper()
	cfg.Streams = 1
	p, err := bus.ProveDurability(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// expectFinding reports what was found of one check.
func expectFinding(t *testing.T, p bus.Proof, check string, status bus.FindingStatus, says string) {
	t.Helper()
	i := slices.IndexFunc(p.Findings, func(f bus.Finding) bool { return f.Check == check })
	if i < 0 {
		t.Fatalf("%s was not looked at: %+v", check, p.Findings)
	}
	if f := p.Findings[i]; f.Status != status || !strings.Contains(f.Detail, says) || f.Status != bus.Proven && f.Remedy == "" {
		t.Errorf("%+v, want %s with %q and a remedy", f, status, says)
	}
}

// TestEmbeddedServerProvesItsProfile: what lazy gives up is said.
func TestEmbeddedServerProvesItsProfile(t *testing.T) {
	t.Parallel()
	for lazy, profile := range map[bool]bus.Profile{false: bus.EmbeddedSync, true: bus.EmbeddedLazy} {
		e := startServer(t, embedded.Config{DontListen: true, Lazy: lazy})
		nc := connectAs(t, e, bus.RoleNode)
		if _, err := bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{}); err != nil {
			t.Fatal(err)
		}
		p, err := bus.ProveDurability(t.Context(), bus.ProofConfig{Conn: nc, Lazy: lazy, Witness: e})
		if err != nil {
			t.Fatal(err)
		}
		if p.Profile != profile || p.Err() != nil || len(p.UnprovenChecks()) > 0 {
			t.Errorf("%+v", p)
		}
		says := "sync: each write"
		if lazy {
			says = "lazy, as asked"
		}
		expectFinding(t, p, "durability", bus.Proven, says)
	}
	e := startServer(t, embedded.Config{DontListen: true, Lazy: true})
	nc := connectAs(t, e, bus.RoleNode)
	if _, err := bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{}); err != nil {
		t.Fatal(err)
	}
	p, err := bus.ProveDurability(t.Context(), bus.ProofConfig{Conn: nc, Witness: e}) // it claims more than it does
	if err != nil || !errors.Is(p.Err(), bus.ErrUnfit) {
		t.Errorf("%v %v", p.Err(), err)
	}
	expectFinding(t, p, "durability", bus.Failed, "syncs every 2m0s")
}

// TestRoomOfLogsInFiles: files of logs that are too full for new runs are a failed check, which lets
// the node start.
func TestRoomOfLogsInFiles(t *testing.T) {
	e := startServer(t, embedded.Config{DontListen: true, Lazy: true})
	nc := connectAs(t, e, bus.RoleNode)
	if _, err := bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{}); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 30
	for used, c := range map[uint64]struct {
		status bus.FindingStatus
		says   string
	}{
		most / 2:      {bus.Proven, "nor have the logs in files"},
		most / 10 * 9: {bus.Failed, "the logs hold 921 of 1024 MiB: new runs are refused"},
	} {
		room := func(context.Context) (uint64, uint64, error) { return used, most, nil }
		p, err := bus.ProveDurability(t.Context(), bus.ProofConfig{Conn: nc, Lazy: true, Witness: e, LogRoom: room})
		if err != nil || p.Err() != nil {
			t.Fatal(err, p.Err())
		}
		expectFinding(t, p, "room", c.status, c.says)
	}
}

// TestRemoteServerNeedsAWitnessOfItsSyncs: without a witness it is not
// proven that it syncs; with one it is proven, or refused.
func TestRemoteServerNeedsAWitnessOfItsSyncs(t *testing.T) {
	t.Parallel()
	for _, synced := range []bool{true, false} {
		e := startCluster(t, synced)
		nc := e.createStreams(1, nil)
		blind := proveDurability(t, bus.ProofConfig{Conn: nc})
		expectFinding(t, blind, "durability", bus.Unproven, "a client cannot see it")
		expectFinding(t, blind, "server version", bus.Proven, "2.")
		if blind.Profile != bus.ServerSync || blind.Err() != nil {
			t.Errorf("%+v", blind)
		}
		for how, w := range map[string]bus.ServerWitness{"the system account": bus.SystemAccount{Conn: e.connectUser("sys")}, "monitoring ports": e.monitorURLs()} {
			p := proveDurability(t, bus.ProofConfig{Conn: nc, Witness: w})
			if synced {
				expectFinding(t, p, "durability", bus.Proven, how)
				continue
			}
			expectFinding(t, p, "durability", bus.Failed, "s0 syncs every 2m0s")
			if err := p.Err(); !errors.Is(err, bus.ErrUnfit) || !strings.Contains(err.Error(), "sync_interval") {
				t.Errorf("%s: %v", how, err)
			}
			if lazy := proveDurability(t, bus.ProofConfig{Conn: nc, Witness: w, Lazy: true}); lazy.Profile != bus.ServerLazy || lazy.Err() != nil {
				t.Errorf("%+v", lazy)
			}
		}
		wrong := proveDurability(t, bus.ProofConfig{Conn: nc, Witness: bus.SystemAccount{Conn: e.connectUser("app")}})
		expectFinding(t, wrong, "durability", bus.Unproven, "not of the system account")
		nobody := proveDurability(t, bus.ProofConfig{Conn: nc, Witness: bus.MonitorURLs{"http://127.0.0.1:1"}})
		expectFinding(t, nobody, "durability", bus.Unproven, "no server reported how it stores")
		other := proveDurability(t, bus.ProofConfig{Conn: nc, Want: bus.ClusterSync})
		expectFinding(t, other, "profile", bus.Failed, "cluster was asked for")
	}
}

// TestAClusterIsAsGoodAsItsWorstServer: three copies, of which one is not
// synced, are refused by name; with one more copy of some streams than of others
// the least counts.
func TestAClusterIsAsGoodAsItsWorstServer(t *testing.T) {
	t.Parallel() // it waits more than it works
	e := startCluster(t, true, true, false)
	nc := e.createStreams(3, nil)
	p := proveDurability(t, bus.ProofConfig{Conn: nc, Witness: bus.SystemAccount{Conn: e.connectUser("sys")}, Want: bus.ClusterSync})
	if p.Profile != bus.ClusterSync {
		t.Errorf("%+v", p)
	}
	expectFinding(t, p, "durability", bus.Failed, "s2 syncs every 2m0s")
	expectFinding(t, p, "server version", bus.Proven, "2.")
	some := proveDurability(t, bus.ProofConfig{Conn: nc, Witness: e.monitorURLs()[:2]})
	expectFinding(t, some, "durability", bus.Unproven, "whether s2 sync each write")
	expectFinding(t, some, "server version", bus.Unproven, "not known of s2")
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "TROUPE_BOX_DEFAULT_0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.Replicas = 1
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	uneven := proveDurability(t, bus.ProofConfig{Conn: nc})
	expectFinding(t, uneven, "replicas", bus.Failed, "have more copies than the others")
	if uneven.Profile != bus.ServerSync || uneven.Err() == nil {
		t.Errorf("%+v", uneven)
	}
}

// TestStreamsThatWouldLoseEntriesAreRefused: each setting by name.
func TestStreamsThatWouldLoseEntriesAreRefused(t *testing.T) {
	t.Parallel()
	e := startCluster(t, true)
	for says, change := range map[string]func(*jetstream.StreamConfig){
		"allows direct reads":      func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"drops old entries":        func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"lets entries be deleted":  func(c *jetstream.StreamConfig) { c.DenyDelete = false },
		"drops entries by age":     func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"is not stored in files":   func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"0 of 0":                   nil,
		"persists asynchronously":  func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"TROUPE_BOX_DEFAULT_0 hol": func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 10 },
	} {
		nc := e.createStreams(1, change)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(says, "hol") {
			if _, err := js.Publish(t.Context(), "troupe.box.default.0.x", make([]byte, 900)); err != nil {
				t.Fatal(err)
			}
		}
		p := proveDurability(t, bus.ProofConfig{Conn: nc, Witness: e.monitorURLs()})
		switch {
		case change == nil:
			if p.Err() != nil || len(p.UnprovenChecks()) > 0 {
				t.Errorf("%+v", p)
			}
		case strings.HasSuffix(says, "hol"): // its runs must be ended by somebody
			expectFinding(t, p, "room", bus.Failed, says)
			if p.Err() != nil {
				t.Error(p.Err())
			}
		default:
			if err := p.Err(); !errors.Is(err, bus.ErrUnfit) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", says, err)
			}
		}
		if err := js.DeleteStream(t.Context(), "TROUPE_BOX_DEFAULT_0"); err != nil {
			t.Fatal(err)
		}
	}
}
