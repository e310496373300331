package deploy_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/node"
)

// waiting is a log that tells when setup waits for a leader.
type waiting chan struct{}

func (w waiting) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "has no leader") {
		select {
		case w <- struct{}{}:
		default:
		}
	}
	return len(line), nil
}

// startMember starts a server of a cluster of three, of which one is never there.
func startMember(t *testing.T, name string, other *url.URL) *server.Server {
	t.Helper()
	away := &url.URL{Scheme: "nats", Host: "127.0.0.1:1"}
	srv, err := server.NewServer(&server.Options{ServerName: name, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), SyncInterval: time.Hour, Routes: []*url.URL{away, other},
		Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT}})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	return srv
}

// TestSetupWaitsForALeader: a cluster whose servers start one after another has no leader at first.
// setup waits, and makes what is needed once it has one.
func TestSetupWaitsForALeader(t *testing.T) {
	first := startMember(t, "s1", &url.URL{Scheme: "nats", Host: "127.0.0.1:2"})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	waits, ended := make(waiting, 1), make(chan error, 1)
	go func() {
		ended <- node.SetupServer(ctx, node.Config{Bus: bus.Options{Servers: first.ClientURL()}, Logger: slog.New(slog.NewTextHandler(waits, nil))}, 1)
	}()
	select {
	case <-waits:
	case err := <-ended:
		t.Fatalf("it does not wait: %v", err)
	}
	startMember(t, "s2", &url.URL{Scheme: "nats", Host: first.ClusterAddr().String()})
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A node with roots on a machine whose pool was not set up says at once which pool is missing and how to make it.
func TestNodeOfAMachineThatWasNotSetUpNamesItsPool(t *testing.T) {
	s := startSite(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := node.SetupServer(ctx, node.Config{Bus: s.connectOptions("setup")}, 1); err != nil {
		t.Fatal(err)
	}
	_, err := node.Start(ctx, node.Config{Name: "n1", Machine: "rack7", Roots: []string{t.TempDir()}, Bus: s.connectOptions("node"), ServiceBus: bus.Options{NKey: s.seeds["service"]},
		Env: func(string) string { return "" }})
	if !errors.Is(err, node.ErrDenied) || !strings.Contains(err.Error(), "troupe-node --setup --pools default,host-rack7: ") || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
