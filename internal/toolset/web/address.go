package web

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ErrRule means that a rule is empty or malformed.
var ErrRule = errors.New("web: bad rule")

// hostRule allows a host, or all below one.
type hostRule struct {
	host  string // "" is any
	below bool
	port  string // "" is the scheme's own
}

func parseHost(text string) (hostRule, error) {
	var r hostRule
	fail := func() (hostRule, error) {
		return r, fmt.Errorf("%w: host %q; write docs.example.com, *.example.com, * or HOST:PORT", ErrRule, text)
	}
	host := strings.ToLower(strings.TrimSpace(text))
	if before, port, ok := strings.Cut(host, ":"); ok && !strings.Contains(port, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fail()
		}
		host, r.port = before, port
	}
	if host == "*" {
		return r, nil
	}
	if after, ok := strings.CutPrefix(host, "*."); ok {
		host, r.below = after, true
	}
	if host == "" || strings.ContainsAny(host, "*/@ \t%?#[]\\") {
		return fail()
	}
	r.host = strings.TrimSuffix(host, ".")
	return r, nil
}

// admitsHost compares names; where they lead is another question, see checkDialed.
func (r hostRule) admitsHost(u *url.URL) bool {
	port := u.Port()
	if (u.Scheme == "https" && port == "443") || (u.Scheme == "http" && port == "80") {
		port = ""
	}
	if port != r.port {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if r.host == "" {
		return true
	}
	return !r.below && host == r.host || r.below && strings.HasSuffix(host, "."+r.host)
}

// addressException is an address that may be reached although it is not public.
type addressException struct {
	net  netip.Prefix
	port uint16 // 0 is any
}

func parseException(text string) (addressException, error) {
	text = strings.TrimSpace(text)
	if p, err := netip.ParsePrefix(text); err == nil {
		return addressException{net: p.Masked()}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap()
		return addressException{net: netip.PrefixFrom(a, a.BitLen())}, nil
	}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		a := ap.Addr().Unmap()
		return addressException{net: netip.PrefixFrom(a, a.BitLen()), port: ap.Port()}, nil
	}
	return addressException{}, fmt.Errorf("%w: address %q; write 127.0.0.1:8080, 10.1.2.3 or 10.1.0.0/16", ErrRule, text)
}

func (e addressException) coversAddress(host string, port uint16) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && e.net.Contains(a.Unmap().WithZone("")) && (e.port == 0 || e.port == port)
}

// closed are networks outside the public web that netip does not know: this network,
// carriers' own, benchmarks, documentation, relays, and reserved ranges. Networks whose
// addresses embed another address are refused as a whole.
var closed = parsePrefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "fec0::/10")

func parsePrefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		list[i] = netip.MustParsePrefix(t)
	}
	return list
}

// isOwn reports whether an address is one of those that a machine has.
func isOwn(host string, own []net.Addr) bool {
	a, err := netip.ParseAddr(host)
	return err != nil || slices.ContainsFunc(own, func(has net.Addr) bool {
		p, err := netip.ParsePrefix(has.String())
		return err == nil && p.Addr().Unmap() == a.Unmap()
	})
}

// Public reports whether an address is part of the public web: not of this
// machine, of its networks, or of the metadata services of clouds.
func Public(host string) bool {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	a = a.Unmap()
	if a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range closed {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
