package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// mustConnect connects until the end of the test.
func mustConnect(t *testing.T, o bus.Options) *nats.Conn {
	t.Helper()
	nc, err := bus.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func TestConnectSchemes(t *testing.T) {
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	seedFile := filepath.Join(t.TempDir(), "user.nk")
	if err := os.WriteFile(seedFile, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	open := bustest.PlainServer(t, &server.Options{})
	password := bustest.PlainServer(t, &server.Options{Username: "u", Password: "p"})
	token := bustest.PlainServer(t, &server.Options{Authorization: "tok"})
	nkey := bustest.PlainServer(t, &server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}})
	for name, c := range map[string]struct {
		o   bus.Options
		err error
	}{
		"open":           {bus.Options{Servers: open}, nil},
		"a list":         {bus.Options{Servers: "nats://127.0.0.1:1, " + open}, nil},
		"password":       {bus.Options{Servers: password, User: "u", Password: "p"}, nil},
		"wrong password": {bus.Options{Servers: password, User: "u", Password: "q"}, bus.ErrCredentials},
		"none":           {bus.Options{Servers: password}, bus.ErrCredentials},
		"token":          {bus.Options{Servers: token, Token: "tok"}, nil},
		"token as user":  {bus.Options{Servers: token, User: "tok"}, nil},
		"nkey":           {bus.Options{Servers: nkey, NKey: seedFile}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if c.err == nil {
				mustConnect(t, c.o)
			} else if _, err := bus.Connect(c.o); !errors.Is(err, c.err) {
				t.Error(err)
			}
		})
	}
	if err := bus.CheckJetStream(t.Context(), mustConnect(t, bus.Options{Servers: open})); !errors.Is(err, bus.ErrNoJetStream) {
		t.Error(err)
	}
}

func TestConnectWithoutAServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "nats://user:secret@" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = bus.Connect(bus.Options{Servers: url})
	if !errors.Is(err, statedir.ErrNoServer) {
		t.Error(err)
	}
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("the message: %v", err)
	}
	for name, o := range map[string]bus.Options{
		"half a certificate": {TLSCert: "x"},
		"no such nkey":       {NKey: filepath.Join(t.TempDir(), "none")},
		"no such ca":         {TLSCA: filepath.Join(t.TempDir(), "none")},
		"no such creds":      {Creds: filepath.Join(t.TempDir(), "none")},
		"no such context":    {Context: "there-is-none-of-this-name"},
	} {
		o.Extra = []nats.Option{nats.SetCustomDialer(noDialer{})}
		if _, err := bus.Connect(o); err == nil {
			t.Errorf("%s: connected", name)
		}
	}
}

// noDialer keeps a test from meeting a server that runs on this machine.
type noDialer struct{}

func (noDialer) Dial(string, string) (net.Conn, error) { return nil, errors.New("no network") }

func TestContext(t *testing.T) {
	url := bustest.PlainServer(t, &server.Options{Username: "u", Password: "p"})
	other := bustest.PlainServer(t, &server.Options{Username: "u", Password: "p"})
	file := filepath.Join(t.TempDir(), "ours.json")
	text := fmt.Sprintf(`{"url":%q,"user":"u","password":"p"}`, url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if nc := mustConnect(t, bus.Options{Context: file}); nc.ConnectedUrl() != url {
		t.Error(nc.ConnectedUrl())
	}
	// A flag goes before the context.
	if nc := mustConnect(t, bus.Options{Context: file, Servers: other}); nc.ConnectedUrl() != other {
		t.Error(nc.ConnectedUrl())
	}
	if _, err := bus.Connect(bus.Options{Context: file, User: "u", Password: "wrong"}); !errors.Is(err, bus.ErrCredentials) {
		t.Error(err)
	}
}

func TestFromEnv(t *testing.T) {
	env := map[string]string{"NATS_URL": "nats://env", "NATS_USER": "u", "NATS_CA": "ca.pem", "NATS_CONTEXT": "c"}
	o := bus.Options{User: "flag"}.FromEnv(func(name string) string { return env[name] })
	if o.Servers != "nats://env" || o.User != "flag" || o.TLSCA != "ca.pem" || o.Context != "c" || !o.NamesServer() {
		t.Errorf("%+v", o)
	}
	if (bus.Options{User: "u"}).NamesServer() {
		t.Error("a user is no server")
	}
}

func TestStateDir(t *testing.T) {
	if got := statedir.StateDir("given"); got != "given" {
		t.Error(got)
	}
	if got := statedir.StateDir(""); filepath.Base(got) != "troupe" || !filepath.IsAbs(got) {
		t.Error(got)
	}
}

// TestAServerWithoutALeaderIsNotOneWithoutJetStream: one of three servers is up. It has
// JetStream, and nobody leads it yet.
func TestAServerWithoutALeaderIsNotOneWithoutJetStream(t *testing.T) {
	t.Parallel() // it waits more than it works
	away, err := url.Parse("nats://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	first := bustest.PlainServer(t, &server.Options{ServerName: "s1", JetStream: true, StoreDir: t.TempDir(), Routes: []*url.URL{away, away},
		Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := bus.CheckJetStream(ctx, mustConnect(t, bus.Options{Servers: first})); !errors.Is(err, bus.ErrNoLeader) || errors.Is(err, bus.ErrNoJetStream) {
		t.Error(err)
	}
}
