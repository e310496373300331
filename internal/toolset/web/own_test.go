package web

import (
	"errors"
	"net"
	"testing"
)

// TestAttackAPublicAddressOfThisMachineIsNotRead: what listens on all addresses is
// reached by the public ones of this machine as by loopback.
func TestAttackAPublicAddressOfThisMachineIsNotRead(t *testing.T) {
	own := func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP("8.8.4.4"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2606:4700::1"), Mask: net.CIDRMask(64, 128)}}, nil
	}
	excepted, err := parseException("8.8.4.4:8080")
	if err != nil {
		t.Fatal(err)
	}
	g := &pageGetter{own: own, private: []addressException{excepted}}
	for address, refused := range map[string]bool{
		"8.8.4.4:443": true, "[2606:4700::1]:443": true, "[::ffff:8.8.4.4]:443": true, "8.8.4.4:8080": false, "8.8.4.5:443": false, "[2606:4700::2]:443": false,
	} {
		if err := g.checkDialed("tcp", address, nil); errors.Is(err, ErrPrivate) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
	g.own = func() ([]net.Addr, error) { return nil, errors.New("no answer") }
	if err := g.checkDialed("tcp", "8.8.8.8:443", nil); !errors.Is(err, ErrPrivate) {
		t.Errorf("without knowing its own addresses: %v", err)
	}
}
