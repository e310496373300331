package process

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// dialRaw connects to a listener by a descriptor that the runtime does not know.
func dialRaw(t *testing.T, l *net.TCPListener) (fd int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	return fd
}

func listenLoopback(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// A thread may have a table of descriptors of its own (unshare), which the table of its process does not show.
func TestAttackSocketsInTablesOfThreads(t *testing.T) {
	t.Parallel()
	l := listenLoopback(t)
	dialed, looked := make(chan int), make(chan struct{})
	go onOtherThread(func() {
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			t.Error(err)
		}
		if err := unix.CloseRange(3, math.MaxInt32, 0); err != nil { // else pipes of other tests stay open in the copy
			t.Error(err)
		}
		fd := dialRaw(t, l)
		dialed <- fd
		<-looked
		_ = unix.Close(fd)
	})
	<-dialed
	defer close(looked)
	taken, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	own := socketsBetween(taken.RemoteAddr().(*net.TCPAddr).AddrPort(), taken.LocalAddr().(*net.TCPAddr).AddrPort()).inodes
	self := unix.Getpid()
	if tableHolds("/proc/self/fd", own) != heldNot {
		t.Fatal("the socket is in the table of the process: this test shows nothing")
	}
	if holdsSocket(self, own) != heldOpen {
		t.Error("a socket in the table of a thread is not found")
	}
	if IsAgentPeer(taken) {
		t.Error("this program counts as one of an agent")
	}
}

// onOtherThread calls a function on a thread that ends with it and is not the main one, whose table /proc/self shows.
func onOtherThread(do func()) {
	runtime.LockOSThread() // never unlocked, unless it is the main thread
	if unix.Gettid() != unix.Getpid() {
		do()
		return
	}
	ended := make(chan struct{})
	go func() { defer close(ended); onOtherThread(do) }()
	<-ended
	runtime.UnlockOSThread()
}

// A descriptor that was sent and not yet received is in no table.
func TestAttackSocketsOnTheirWay(t *testing.T) {
	t.Parallel()
	l := listenLoopback(t)
	fd := dialRaw(t, l)
	taken, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) }()
	if IsAgentPeer(taken) {
		t.Error("this program counts as one of an agent")
	}
	if err := unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	if !IsAgentPeer(taken) {
		t.Error("a socket that no process holds passes")
	}
}

// ownAddress returns an address of this machine that is no loopback address; without one it is the second of the loopback.
func ownAddress(t *testing.T) netip.Addr {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr()
		}
	}
	return netip.MustParseAddr("127.0.0.2")
}

// TestAttackPeersAtAddressesOfThisMachine: a program on this machine is looked at whichever of its addresses it dials, and from
// whichever it dials. A connection whose other end is gone shows it: only of a peer on this machine does that prove anything.
func TestAttackPeersAtAddressesOfThisMachine(t *testing.T) {
	t.Parallel()
	own, loopback := ownAddress(t), netip.MustParseAddr("127.0.0.1")
	for name, at := range map[string]struct{ from, to netip.Addr }{
		"its own address":                    {own, own},
		"the loopback":                       {loopback, loopback},
		"the loopback, from its own address": {own, loopback},
		"its own address, from the loopback": {loopback, own},
	} {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at.to, 0)))
		if err != nil {
			t.Fatal(err)
		}
		dialed, err := net.DialTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at.from, 0)), l.Addr().(*net.TCPAddr))
		if err != nil {
			t.Fatal(err)
		}
		taken, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if IsAgentPeer(taken) {
			t.Errorf("%s: this program counts as one of an agent", name)
		}
		if err := dialed.Close(); err != nil {
			t.Fatal(err)
		}
		if !IsAgentPeer(taken) {
			t.Errorf("%s: a peer that is gone was not looked at", name)
		}
		_, _ = taken.Close(), l.Close()
	}
}

// Without an interface but the loopback the test above cannot tell, so this one states the addresses.
func TestAttackAddressesOfThisMachine(t *testing.T) {
	t.Parallel()
	own := func() ([]net.Addr, error) {
		return []net.Addr{
			&net.IPNet{IP: net.IPv4(192, 0, 2, 2), Mask: net.CIDRMask(24, 32)},
			&net.IPNet{IP: net.ParseIP("fe80::1"), Mask: net.CIDRMask(64, 128)},
		}, nil
	}
	for address, want := range map[string]bool{
		"127.0.0.1": true, "127.3.2.1": true, "::1": true, "::ffff:127.0.0.1": true,
		"192.0.2.2": true, "::ffff:192.0.2.2": true, "fe80::1": true, "fe80::1%eth0": true,
		"192.0.2.3": false, "fe80::2%eth0": false, "0.0.0.0": false,
	} {
		if got := isThisMachine(netip.MustParseAddr(address), own); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	failing := func() ([]net.Addr, error) { return nil, errors.New("no interfaces") }
	if !isThisMachine(netip.MustParseAddr("192.0.2.3"), failing) {
		t.Error("a peer passes unseen if the addresses of this machine are unknown")
	}
}

// The kernel's table of sockets is read in pieces, and a socket can be missing from it while others come and go.
func TestAConnectionIsFoundAmongOthersThatComeAndGo(t *testing.T) {
	t.Parallel()
	l, busy := listenLoopback(t), listenLoopback(t)
	go func() {
		for {
			c, err := busy.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	var dialers sync.WaitGroup
	defer dialers.Wait()
	defer cancel()
	for range 4 {
		dialers.Go(func() {
			for ctx.Err() == nil {
				if c, err := net.Dial("tcp", busy.Addr().String()); err == nil {
					_ = c.Close()
				}
			}
		})
	}
	own, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	taken, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	refused := 0
	for range 40 {
		if IsAgentPeer(taken) {
			refused++
		}
	}
	if refused > 0 {
		t.Errorf("%d of 40 times this program counts as one of an agent", refused)
	}
}
