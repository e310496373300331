package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nkeys"
)

// observerDialer connects observers to one server, in its protocol: with the user that its URL
// names, or with TLS and an nkey.
type observerDialer struct {
	server  *url.URL
	subject string
	tls     *tls.Config
	pair    nkeys.KeyPair
}

func newObserverDialer(how crowdOptions) (*observerDialer, error) {
	u, err := url.Parse(how.Server)
	if err != nil {
		return nil, err
	}
	d := &observerDialer{server: u, subject: how.Subject}
	if how.Seed == "" {
		return d, nil
	}
	authority, err := os.ReadFile(how.CA)
	if err != nil {
		return nil, err
	}
	d.tls = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	if !d.tls.RootCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", how.CA)
	}
	seed, err := os.ReadFile(how.Seed)
	if err != nil {
		return nil, err
	}
	d.pair, err = nkeys.FromSeed(seed)
	return d, err
}

// dial connects and subscribes.
func (d *observerDialer) dial() (net.Conn, *bufio.Reader, error) {
	c, err := net.DialTimeout("tcp", d.server.Host, watcherDial)
	if err != nil {
		return nil, nil, err
	}
	spoken, r, err := d.subscribe(c)
	if err != nil {
		_ = c.Close() // it is of no use
		return nil, nil, err
	}
	return spoken, r, nil
}

// subscribe speaks with the server until it has confirmed the subscription.
func (d *observerDialer) subscribe(c net.Conn) (net.Conn, *bufio.Reader, error) {
	r := bufio.NewReaderSize(c, 64<<10)
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, nil, err
	}
	var info struct{ Nonce string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "INFO ")), &info); err != nil {
		return nil, nil, fmt.Errorf("the server says %q: %w", line, err)
	}
	if d.tls != nil {
		c = tls.Client(c, d.tls)
		r.Reset(c)
	}
	hello, err := d.hello(info.Nonce)
	if err == nil {
		_, err = fmt.Fprintf(c, "CONNECT %s\r\nSUB %s 1\r\nPING\r\n", hello, d.subject)
	}
	for line := ""; err == nil && !strings.HasPrefix(line, "PONG"); {
		if line, err = r.ReadString('\n'); strings.HasPrefix(line, "-ERR") {
			err = fmt.Errorf("the server says %s", strings.TrimSpace(line))
		}
	}
	return c, r, err
}

// hello is the body of CONNECT. A server with nkeys wants its nonce signed.
func (d *observerDialer) hello(nonce string) ([]byte, error) {
	h := map[string]any{"verbose": false, "pedantic": false, "lang": "chaos", "version": "1", "protocol": 1}
	if d.pair == nil {
		password, _ := d.server.User.Password()
		h["user"], h["pass"] = d.server.User.Username(), password
		return json.Marshal(h)
	}
	public, err := d.pair.PublicKey()
	if err != nil {
		return nil, err
	}
	signed, err := d.pair.Sign([]byte(nonce))
	if err != nil {
		return nil, err
	}
	h["nkey"], h["sig"], h["tls_required"] = public, base64.RawURLEncoding.EncodeToString(signed), true
	return json.Marshal(h)
}
