package process

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
)

// dialPair returns both ends of a TCP connection.
func dialPair(t *testing.T, network, address string) (dialed, taken *net.TCPConn) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	host, _, err := net.SplitHostPort(address) // with its zone, which the address of the listener has not
	if err != nil {
		t.Fatal(err)
	}
	here, err := net.Dial(network, net.JoinHostPort(host, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = here.Close() })
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = there.Close() })
	return here.(*net.TCPConn), there.(*net.TCPConn)
}

// linkLocalAddress returns an address of a link of this machine, with its zone; "" if there is none.
func linkLocalAddress(t *testing.T) string {
	t.Helper()
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		own, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range own {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() {
				return p.Addr().WithZone(i.Name).String()
			}
		}
	}
	return ""
}

func TestASocketIsFoundByItsAddresses(t *testing.T) {
	t.Parallel()
	addresses := []string{"127.0.0.1:0", "[::1]:0"}
	if a := linkLocalAddress(t); a != "" {
		addresses = append(addresses, net.JoinHostPort(a, "0"))
	}
	for _, address := range addresses {
		dialed, taken := dialPair(t, "tcp", address)
		ends := func(c net.Conn) (local, remote netip.AddrPort) {
			return c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
		}
		seen := map[uint32]bool{}
		for _, c := range []*net.TCPConn{dialed, taken} {
			s, err := findSocket(ends(c))
			if err != nil || s.uid != uint32(os.Getuid()) || seen[s.inode] {
				t.Fatalf("%s: socket %+v, error %v", address, s, err)
			}
			seen[s.inode] = true
			local, remote := ends(c)
			if list := listedSockets(local.Port(), remote.Port()); !list.own || list.inodes[0] != strconv.FormatUint(uint64(s.inode), 10) {
				t.Errorf("%s: the list has %+v, the kernel says %d", address, list, s.inode)
			}
			if tableHolds("/proc/self/fd", []string{strconv.FormatUint(uint64(s.inode), 10)}) != heldOpen {
				t.Errorf("%s: socket %d is not open in this process", address, s.inode)
			}
		}
		local, remote := ends(dialed)
		other := netip.AddrPortFrom(local.Addr(), 1)
		if s, err := findSocket(other, remote); !errors.Is(err, errNoSocket) {
			t.Errorf("%s: another port has socket %+v, error %v", address, s, err)
		}
		if err := errors.Join(dialed.Close(), taken.Close()); err != nil {
			t.Fatal(err)
		}
		if s, err := findSocket(local, remote); !errors.Is(err, errNoSocket) {
			t.Errorf("%s: a closed connection has socket %+v, error %v", address, s, err)
		}
	}
}
