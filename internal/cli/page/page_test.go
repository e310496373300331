package page

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// The token goes to an address of this machine only: what a node of another one announces is not believed, and localhost
// is 127.0.0.1, for any account may listen at ::1.
func TestTheTokenStaysOnThisMachine(t *testing.T) {
	for _, c := range []struct{ host, announced, want string }{
		{"here", "http://127.0.0.1:8420", "http://127.0.0.1:8420"},
		{"here", "http://[::]:8420", "http://127.0.0.1:8420"},
		{"here", "http://0.0.0.0:8420", "http://127.0.0.1:8420"},
		{"here", "http://[::1]:8420", "http://[::1]:8420"},
		{"here", "http://198.51.100.7:8420", ""}, // an address for documentation, which no machine has
		{"here", "http://elsewhere.example.org:8420", ""},
		{"there", "http://127.0.0.1:8420", ""},
		{"there", "http://[::]:8420", ""},
	} {
		if got := addressHere(client.NodeInfo{Host: c.host, HTTP: c.announced}, "here"); got != c.want {
			t.Errorf("node of %s at %s: %q, want %q", c.host, c.announced, got, c.want)
		}
	}
	for given, want := range map[string]string{"http://localhost:8420": "http://127.0.0.1:8420", "http://localhost": "http://127.0.0.1:80", "https://localhost:8420/": "https://localhost:8420", "http://[::1]:8420": "http://[::1]:8420"} {
		if got, err := checkURL(given); err != nil || got != want {
			t.Errorf("--url %s: %q, %v; want %q", given, got, err, want)
		}
	}
}

// A proxy of the environment would read the token where the connection is not encrypted.
func TestNoProxyGetsTheTokenInTheClear(t *testing.T) {
	for address, hasProxy := range map[string]bool{"http://127.0.0.1:8420": false, "http://198.51.100.7:8420": false, "https://troupe.example.com": true} {
		at, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if transport := ticketClient(at).Transport.(*http.Transport); (transport.Proxy != nil) != hasProxy {
			t.Errorf("%s: asks a proxy: %t", address, !hasProxy)
		}
	}
}
