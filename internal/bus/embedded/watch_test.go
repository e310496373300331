package embedded_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
)

// connectObserver connects by a context of the nats CLI.
func connectObserver(t *testing.T, home, name string, options ...nats.Option) *nats.Conn {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", home)
	closed, register := trackClosing(t)
	nc, _, err := natscontext.Connect(name, append(options, closed)...)
	if err != nil {
		t.Fatal(err)
	}
	register(nc)
	return nc
}

func contextPath(home, name string) string {
	return filepath.Join(home, "nats", "context", name+".json")
}

// An observer connects by the context that the server writes, and hears events.
func TestObserverContext(t *testing.T) {
	home := t.TempDir()
	e := startServer(t, embedded.Config{Port: embedded.FreePort, ConfigHome: home})
	if e.WatchCommand() != "nats --context troupe" {
		t.Errorf("watch by %q", e.WatchCommand())
	}
	path := contextPath(home, "troupe")
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	said := make(violations, 16)
	nc := connectObserver(t, home, "troupe", said.errorHandler())
	sub, err := nc.SubscribeSync("troupe.evt.>")
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	node := connectAs(t, e, bus.RoleNode)
	if err := errors.Join(node.Publish("troupe.evt.run.root.turn.started", []byte("x")), node.Flush()); err != nil {
		t.Fatal(err)
	}
	if m, err := sub.NextMsg(30 * time.Second); err != nil || m.Subject != "troupe.evt.run.root.turn.started" {
		t.Errorf("%v, %v", m, err)
	}
	for _, subject := range []string{"troupe.cmd.run", "troupe.cmd.list", "$SRV.PING", "_INBOX.x", "troupe.evt.run.root.turn.started"} {
		if err := nc.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		if !said.wasRefused(t, nc) {
			t.Errorf("an observer published to %s", subject)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the context is left: %v", err)
	}
}

// A context that the user made is never replaced, and each state directory has its own.
func TestContextsOfOthersStay(t *testing.T) {
	home := t.TempDir()
	path := contextPath(home, "troupe")
	const mine = `{"description":"mine","url":"nats://elsewhere"}`
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(mine), 0o600)); err != nil {
		t.Fatal(err)
	}
	first := startServer(t, embedded.Config{Port: embedded.FreePort, ConfigHome: home})
	second := startServer(t, embedded.Config{Port: embedded.FreePort, ConfigHome: home})
	for e, name := range map[*embedded.Server]string{first: "troupe-2", second: "troupe-3"} {
		if e.WatchCommand() != "nats --context "+name {
			t.Errorf("%q, want %s", e.WatchCommand(), name)
		}
		if nc := connectObserver(t, home, name); nc.ConnectedUrl() != e.URL() {
			t.Errorf("%s leads to %s, not %s", name, nc.ConnectedUrl(), e.URL())
		}
	}
	// What a process that was killed left there is used again, and what somebody else
	// wrote since is not removed.
	left, err := os.ReadFile(contextPath(home, "troupe-2"))
	if err = errors.Join(err, first.Close(), os.WriteFile(contextPath(home, "troupe-2"), left, 0o600)); err != nil {
		t.Fatal(err)
	}
	third := startServer(t, embedded.Config{Port: embedded.FreePort, ConfigHome: home})
	if third.WatchCommand() != "nats --context troupe-2" {
		t.Errorf("a stale context was not replaced: %q", third.WatchCommand())
	}
	if err := errors.Join(os.WriteFile(contextPath(home, "troupe-2"), []byte(mine), 0o600), third.Close(), second.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"troupe", "troupe-2"} {
		if text, err := os.ReadFile(contextPath(home, name)); err != nil || string(text) != mine {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

// Where the user's configuration cannot be written, the state directory has the
// context, and the command says so.
func TestContextWithoutConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := startServer(t, embedded.Config{Port: embedded.FreePort, ConfigHome: file})
	if want := "XDG_CONFIG_HOME='" + e.StateDir() + "' nats --context troupe"; e.WatchCommand() != want {
		t.Errorf("%q, want %q", e.WatchCommand(), want)
	}
	if nc := connectObserver(t, e.StateDir(), "troupe"); nc.ConnectedUrl() != e.URL() {
		t.Error(nc.ConnectedUrl())
	}
}

// An observer may have so many subscriptions, and the server goes on.
func TestAttackObserverSubscriptionsAreBounded(t *testing.T) {
	e := startServer(t, embedded.Config{DontListen: true})
	said := make(chan error, 1)
	nc := connectAs(t, e, bus.RoleObserver, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { said <- err }))
	for range embedded.WatcherSubsMax + 1 {
		if _, err := nc.SubscribeSync("troupe.evt.>"); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-said; !errors.Is(err, nats.ErrMaxSubscriptionsExceeded) {
		t.Errorf("%v", err)
	}
	if err := bus.CheckJetStream(t.Context(), connectAs(t, e, bus.RoleNode)); err != nil {
		t.Error(err)
	}
}

// An observer that reads nothing is cut off at its own limit, and what the node
// publishes does not wait for it.
func TestAttackSlowObserverIsDisconnected(t *testing.T) {
	t.Parallel()
	e := startServer(t, embedded.Config{Port: embedded.FreePort})
	user, password := e.Credential(bus.RoleObserver)
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT {\"user\":%q,\"pass\":%q,\"verbose\":false}\r\nSUB troupe.evt.> 1\r\nPING\r\n", user, password)
	for lines := bufio.NewScanner(conn); lines.Scan() && lines.Text() != "PONG"; {
	}
	node := connectAs(t, e, bus.RoleNode)
	event := make([]byte, embedded.PayloadMax)
	for sent := 0; sent < embedded.PortPendingMax+16<<20; sent += len(event) {
		if err := errors.Join(node.Publish("troupe.evt.run.root.turn.started", event), node.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(30 * time.Second)
	for err = nil; err == nil; <-time.After(time.Millisecond) {
		if _, err = conn.Write([]byte("PING\r\n")); time.Now().After(end) {
			t.Fatal("it is not cut off")
		}
	}
	if err := node.Flush(); err != nil {
		t.Error(err)
	}
}
