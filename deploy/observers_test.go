package deploy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
)

// writeCertificate writes a certificate for 127.0.0.1, its key, and itself as the authority, under the names of
// server.conf.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, data := range map[string][]byte{"server.crt": public, "ca.crt": public, "server.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// loadConfig reads a file of nats/ without some parts, with its secrets in dir, and its ports on loopback.
func loadConfig(t *testing.T, name, dir string, without ...*regexp.Regexp) *server.Options {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("nats", name))
	if err != nil {
		t.Fatal(err)
	}
	roles, err := os.ReadFile("nats/troupe.conf") // which server.conf includes
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "troupe.conf"), roles, 0o600)); err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("/etc/nats", dir, "/var/lib/nats", filepath.Join(dir, "store"), "0.0.0.0:4222", "127.0.0.1:-1", "0.0.0.0:7422", "127.0.0.1:-1",
		"0.0.0.0:6222", "127.0.0.1:-1", "127.0.0.1:8222", "127.0.0.1:-1").Replace(string(text))
	for _, part := range without {
		config = part.ReplaceAllString(config, "")
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	return o
}

func startServer(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	return s
}

// TestObserversHaveAServerOfTheirOwn: observers of the server of observers.conf receive the events of the cluster, and can
// publish nothing, there or in the cluster.
//
//behaviour:shows I2
func TestObserversHaveAServerOfTheirOwn(t *testing.T) {
	site := startSite(t) // makes the keys
	dir := t.TempDir()
	writeCertificate(t, dir)
	seed, err := os.ReadFile(site.seeds["observer"])
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TROUPE_OBSERVER_SEED", string(seed))
	t.Setenv("NAME", "s1")
	options := loadConfig(t, "server.conf", dir)
	options.Cluster = server.ClusterOpts{} // one server is enough here
	main := startServer(t, options)
	t.Setenv("NAME", "o1")
	t.Setenv("LEAF_URL", "tls://127.0.0.1:"+strconv.Itoa(options.LeafNode.Port))
	leaf := startServer(t, loadConfig(t, "observers.conf", dir))
	connect := func(s *server.Server, role string, extra ...nats.Option) *nats.Conn {
		o := bus.Options{Servers: s.ClientURL(), NKey: site.seeds[role], TLSCA: filepath.Join(dir, "ca.crt"), Extra: extra}
		nc, err := bus.Connect(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	denied := make(chan error, 1)
	observer := connect(leaf, "observer", nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	sub, err := observer.SubscribeSync("troupe.evt.>")
	if err = errors.Join(err, observer.Flush()); err != nil {
		t.Fatal(err)
	}
	node := connect(main, "node")
	const subject = "troupe.evt.r1.root.turn.started"
	for end := time.Now().Add(patience); ; {
		if err := errors.Join(node.Publish(subject, []byte("{}")), node.Flush()); err != nil {
			t.Fatal(err)
		}
		if m, err := sub.NextMsg(100 * time.Millisecond); err == nil && m.Subject == subject {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no event arrives")
		}
	}
	if err := errors.Join(observer.Publish("troupe.cmd.run", nil), observer.Flush()); err != nil {
		t.Fatal(err)
	}
	if err := <-denied; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Error(err)
	}
}
