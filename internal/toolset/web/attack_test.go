package web_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/troupe-run/troupe/internal/toolset/web"
)

// TestAttackPrivateAddressesAreNotRead: every way to write an address that is not of
// the public web, under rules that allow all hosts. PORT is that of a server on
// loopback, which must not be asked.
func TestAttackPrivateAddressesAreNotRead(t *testing.T) {
	var asked atomic.Int64
	address, _ := serveSite(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	forms := []string{
		// Loopback, written in all ways.
		"127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "2130706433", "0x7f000001", "0x7f.0.0.1", "0x7f.1", "017700000001", "0177.0.0.1", "0177.1", "127.0.0.01",
		"127.0.0.1.", "localhost", "localhost.", "LOCALHOST", "ip6-localhost", "[::1]", "[0:0:0:0:0:0:0:1]", "[::1%25lo]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
		"[::127.0.0.1]", "[0000::1]", "%31%32%37.0.0.1", "１２７.0.0.1", "127。0。0。1", "127．0．0．1", "127｡0｡0｡1", "①②⑦.⓪.⓪.①", "ⓛocalhost",
		// This host, private networks, carriers, links, clouds.
		"0.0.0.0", "0", "0x0", "00000000", "[::]", "10.0.0.1", "0xa000001", "172.16.0.1", "172.31.255.255", "192.168.0.1", "3232235521", "100.64.0.1", "100.127.255.255",
		"169.254.169.254", "2852039166", "0xA9FEA9FE", "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "[fe80::1]", "[fe80::1%25eth0]", "[fd00:ec2::254]", "[fc00::1]", "[fec0::1]",
		"100.100.100.200", "192.0.0.192",
		// Addresses with another one in them.
		"[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[::ffff:0:127.0.0.1]",
		// Multicast, broadcast, reserved, documentation, benchmarks.
		"224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "[ff02::1]", "[2001:db8::1]", "[100::1]", "192.88.99.1",
		// Parsers that disagree about where the host is.
		"user@127.0.0.1", "example.com@127.0.0.1", "example.com:80@127.0.0.1", "127.0.0.1\\@example.com", "127.0.0.1#@example.com", "127.0.0.1%00.example.com", "127.0.0.1%2f.example.com",
		"127.0.0.1\t", " 127.0.0.1", "127.0.0.1\r\nHost: example.com", "[127.0.0.1]", "[::1", "",
	}
	rules := web.Config{Allow: []string{"*", "*:" + u.Port()}}
	var forming sync.WaitGroup // forms that are looked up as names wait for a resolver
	for _, form := range forms {
		forming.Go(func() {
			t.Run(form, func(t *testing.T) {
				for _, scheme := range []string{"http", "HTTP"} {
					for _, port := range []string{"", ":" + u.Port(), ":0" + u.Port()} {
						if r := fetchAddress(t, rules, scheme+"://"+form+port+"/"); !r.Error {
							t.Errorf("%s://%s%s was read: %.80s", scheme, form, port, r.Text)
						}
					}
				}
			})
		})
	}
	forming.Wait()
	for _, other := range []string{"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "//127.0.0.1/", "http:127.0.0.1", "http:///", "unix:///run/x", "data:text/plain,x", "javascript:1"} {
		if r := fetchAddress(t, rules, other); !r.Error {
			t.Errorf("%s was read: %.80s", other, r.Text)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("a server on loopback was asked %d times", n)
	}
	if len(forms) < 38 {
		t.Error("the table is short")
	}
}

// TestAttackPrivateAddressesBehindARedirectAreNotRead: an allowed page leads to the inside, in
// the forms that a Location may have; and so may a name that resolves elsewhere at its
// second look-up: the address that is dialed is what counts.
func TestAttackPrivateAddressesBehindARedirectAreNotRead(t *testing.T) {
	var inside atomic.Int64
	hidden, _ := serveSite(t, func(http.ResponseWriter, *http.Request) { inside.Add(1) })
	u, err := url.Parse(hidden)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"http://127.0.0.1:%s/", "http://127.1:%s/", "http://2130706433:%s/", "http://[::ffff:127.0.0.1]:%s/", "//127.0.0.1:%s/", "http://u:p@127.0.0.1:%s/", "http://localhost:%s/"} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			open, rules := serveSite(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", fmt.Sprintf(form, u.Port()))
				w.WriteHeader(status)
			})
			rules.Allow = append(rules.Allow, "*:"+u.Port())
			if r := fetchAddress(t, rules, open); !r.Error {
				t.Errorf("%d to %s was read: %.80s", status, form, r.Text)
			}
		}
	}
	if n := inside.Load(); n != 0 {
		t.Errorf("the inside was asked %d times", n)
	}
	for _, ip := range []string{"8.8.8.8", "1.1.1.1", "2606:4700:4700::1111"} { // the guard is not closed for all
		if !web.Public(ip) || net.ParseIP(ip) == nil || strings.Contains(ip, "%") {
			t.Errorf("%s is public", ip)
		}
	}
}
