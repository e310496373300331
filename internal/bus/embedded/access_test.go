package embedded_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// An account of this machine that has no credential is refused, whatever it says.
func TestAttackAnonymousConnectIsRefused(t *testing.T) {
	e := startServer(t, embedded.Config{Port: embedded.FreePort})
	for name, o := range map[string]bus.Options{
		"nothing": {}, "a role without its password": {User: "node", Password: " "}, "the user of open access": {User: "anyone", Password: " "}, "a token": {Token: "x"},
	} {
		o.Servers = e.URL()
		nc, err := bus.Connect(o)
		if !errors.Is(err, bus.ErrCredentials) {
			t.Errorf("%s: %v", name, err)
		}
		if nc != nil {
			nc.Close()
		}
	}
	// Nor does a connection that leaves CONNECT out get anything done.
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "SUB troupe.evt.> 1\r\nPING\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(conn) // it may be reset behind the answer
	if !bytes.Contains(answer, []byte("Authorization Violation")) || bytes.Contains(answer, []byte("PONG")) {
		t.Errorf("%s", answer)
	}
}

// fakeServer listens on a port as another account may after a crash, greets as a NATS server
// does and takes down all that it is sent.
type fakeServer struct {
	net.Listener
	mu   sync.Mutex
	text bytes.Buffer
}

func startFakeServer(t *testing.T, network, address string) *fakeServer {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go f.serveConn(conn)
		}
	}()
	return f
}

func (f *fakeServer) serveConn(conn net.Conn) {
	_, _ = io.WriteString(conn, `INFO {"server_id":"x","version":"2.12.7","proto":1,"max_payload":1048576}`+"\r\n")
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		f.mu.Lock()
		fmt.Fprintln(&f.text, lines.Text())
		f.mu.Unlock()
		if strings.HasPrefix(lines.Text(), "PING") {
			_, _ = io.WriteString(conn, "PONG\r\n")
		}
	}
}

func (f *fakeServer) receivedText() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String()
}

// After a kill -9 node.json stays. Whoever listens on its port by then gets no byte.
func TestAttackStaleNodeFileLeaksNothing(t *testing.T) {
	dir := privateDir(t)
	e := startServer(t, embedded.Config{StateDir: dir, Port: embedded.FreePort})
	left, err := os.ReadFile(statedir.NodeFilePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(statedir.NodeFilePath(dir), left, 0o600); err != nil {
		t.Fatal(err)
	}
	f := startFakeServer(t, "tcp", strings.TrimPrefix(e.URL(), "nats://"))
	if _, _, err := bus.JoinOwner(dir); !errors.Is(err, statedir.ErrNoServer) {
		t.Errorf("joined: %v", err)
	}
	if heard := f.receivedText(); heard != "" {
		t.Errorf("the fake server heard %s", heard)
	}
}

// A socket that others could have put there is not used.
func TestAttackSocketInOpenDirectoryIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no modes
	}
	public := t.TempDir()
	f := startFakeServer(t, "unix", filepath.Join(public, "s"))
	dir := privateDir(t)
	file := statedir.NodeFile{Address: "nats://127.0.0.1:1", Socket: filepath.Join(public, "s"), User: "client", Password: "secret"}
	data, err := json.Marshal(file)
	if err == nil {
		err = errors.Join(os.WriteFile(statedir.NodeFilePath(dir), data, 0o600), os.Chmod(public, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := bus.JoinOwner(dir); !errors.Is(err, statedir.ErrNodeFile) {
		t.Errorf("a socket in an open directory: %v", err)
	}
	if err := errors.Join(os.Chmod(public, 0o700), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bus.JoinOwner(dir); !errors.Is(err, statedir.ErrNodeFile) || !strings.Contains(err.Error(), "chmod 700 "+dir) {
		t.Errorf("an open state directory: %v", err)
	}
	if heard := f.receivedText(); heard != "" {
		t.Errorf("the fake server heard %s", heard)
	}
}

// A state directory that was made with a wider mode is closed, unless it holds
// something else: that is not ours to close.
func TestStateDirectoryIsClosed(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no modes
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	e := startServer(t, embedded.Config{StateDir: dir, DontListen: true})
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := errors.Join(e.Close(), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Start(embedded.Config{StateDir: dir, DontListen: true}); !errors.Is(err, statedir.ErrStateDir) || !errors.Is(err, statedir.ErrUntrusted) {
		t.Errorf("state that others could write: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	startServer(t, embedded.Config{StateDir: dir, DontListen: true})
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	other := t.TempDir()
	if err := errors.Join(os.Chmod(other, 0o755), os.WriteFile(filepath.Join(other, "mine"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(embedded.Config{StateDir: other, DontListen: true})
	if !errors.Is(err, statedir.ErrStateDir) || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a directory of other files: %v", err)
	}
	if info, err := os.Stat(other); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("it was changed: %v, %v", info.Mode(), err)
	}
}

// The path of a socket may be longer than an address of the system.
func TestLongStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30), strings.Repeat("way", 30))
	e := startServer(t, embedded.Config{StateDir: dir, NoPort: true})
	closed, register := trackClosing(t)
	nc, file, err := bus.JoinOwner(dir, closed)
	if err != nil {
		t.Fatal(err)
	}
	register(nc)
	if file.Address != "" || file.Socket == "" || e.URL() != "" {
		t.Errorf("%+v, %s", file, e.URL())
	}
	if runtime.GOOS == "linux" && filepath.Dir(file.Socket) != dir {
		t.Errorf("the socket is at %s", file.Socket)
	}
	nc.Close()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(file.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// A connection by the socket comes back by the socket, and proves it each time.
func TestReconnectsByTheSocket(t *testing.T) {
	dir := privateDir(t)
	startServer(t, embedded.Config{StateDir: dir, Port: embedded.FreePort})
	back := make(chan struct{}, 1)
	closed, register := trackClosing(t)
	nc, _, err := bus.JoinOwner(dir, closed, nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }))
	if err != nil {
		t.Fatal(err)
	}
	register(nc)
	if err := nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	<-back
	if err := nc.Flush(); err != nil {
		t.Error(err)
	}
}
