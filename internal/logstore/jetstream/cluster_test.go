package jetstream_test

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	native "github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/test/boxtest"
	"github.com/troupe-run/troupe/mailbox"
)

// startCluster starts three servers and returns a connection to the first. Somebody else
// may get a port before its server has it: then others are tried.
func startCluster(t *testing.T) *nats.Conn {
	t.Helper()
	for range 5 {
		servers := gatherServers(t)
		t.Cleanup(func() { endServers(servers) })
		if !slices.ContainsFunc(servers, func(s *server.Server) bool { return !s.ReadyForConnections(patience / 2) }) {
			return connectRemote(t, servers[0].ClientURL())
		}
		endServers(servers)
	}
	t.Fatal("no cluster comes up")
	return nil
}

// endServers shuts servers down, which may be so already.
func endServers(servers []*server.Server) {
	for _, s := range servers {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// gatherServers starts three servers that are to be a cluster.
func gatherServers(t *testing.T) []*server.Server {
	t.Helper()
	const size = 3
	var routes []*url.URL
	var ports []int
	for range size {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var servers []*server.Server
	for n := range size {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("s%d", n), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), Routes: routes,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[n]},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		servers = append(servers, s)
	}
	return servers
}

// openReplicated opens a Post as soon as the cluster has found its leader.
func openReplicated(t *testing.T, nc *nats.Conn, cfg jetstream.Config) *jetstream.Post {
	t.Helper()
	cfg.Replicas = 3
	for until := time.Now().Add(patience); ; <-time.After(pause) {
		p, err := jetstream.Open(t.Context(), nc, cfg)
		if err == nil {
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			return p
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// TestCluster: three replicas keep every promise that one does, and a change of
// leader loses and reorders nothing.
func TestCluster(t *testing.T) {
	t.Parallel() // it waits more than it works
	nc := startCluster(t)
	var pools atomic.Int64
	boxtest.Run(t, func(t *testing.T) mailbox.Post {
		cfg := quickConfig()
		cfg.Pool = fmt.Sprintf("p%d", pools.Add(1))
		cfg.RetryAfter, cfg.Heartbeat = rarely, time.Second
		return openReplicated(t, nc, cfg)
	})
	t.Run("leader steps down", func(t *testing.T) {
		cfg := quickConfig()
		cfg.Pool = "down"
		p := openReplicated(t, nc, cfg)
		l := openTail(t, p)
		l.appendMany(t, p, 3000, 7, func(i int) {
			if i%500 == 250 {
				stepDown(t, nc, names.Names{}.BoxStream("down", i/500%2))
			}
		})
		at, err := p.Addresses(t.Context(), "run")
		if err != nil || len(at) != 7 {
			t.Errorf("%v, %v", at, err)
		}
	})
}

// stepDown has the leader of a stream give up. While there is none, nobody
// answers.
func stepDown(t *testing.T, nc *nats.Conn, stream string) {
	t.Helper()
	for until := time.Now().Add(patience); ; <-time.After(pause) {
		m, err := nc.Request(native.DefaultAPIPrefix+"STREAM.LEADER.STEPDOWN."+stream, nil, time.Second)
		if err == nil && strings.Contains(string(m.Data), `"success":true`) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the leader of %s does not step down: %v", stream, err)
		}
	}
}
