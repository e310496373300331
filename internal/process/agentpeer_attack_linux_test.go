package process

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// sharePort lets other sockets of this user have the port of a socket, too.
func sharePort(_, _ string, c syscall.RawConn) (failed error) {
	err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	if err != nil {
		return err
	}
	return failed
}

// TestAttackPeerWithThePortOfAListener: a program dials from the port on which another program of the user listens, sends its
// decision and breaks the connection off. The listener is not the peer.
func TestAttackPeerWithThePortOfAListener(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "::1"} {
		listen := net.ListenConfig{Control: sharePort}
		person, err := listen.Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer person.Close()
		node, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer node.Close()
		program, err := (&net.Dialer{LocalAddr: person.Addr(), Control: sharePort}).DialContext(t.Context(), "tcp", node.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		taken, err := node.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		if IsAgentPeer(taken) {
			t.Error("this program counts as one of an agent")
		}
		if err := program.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		if err := program.Close(); err != nil {
			t.Fatal(err)
		}
		if !IsAgentPeer(taken) {
			t.Errorf("%s: the listener counts as the peer, which is gone", host)
		}
	}
}

// dialVar makes this test binary a program that connects to its value, an address or the path of a socket. Of a path it
// leaves the connection to a child that has another number, and ends.
const dialVar = "PROC_TEST_DIAL"

// nobody is a user who runs no node.
const nobody = 65534

func dialAsProgram(address string) {
	if strings.HasPrefix(address, "/") {
		conn, err := net.Dial("unix", address)
		if err != nil {
			os.Exit(1)
		}
		file, err := conn.(*net.UnixConn).File()
		if err != nil {
			os.Exit(1)
		}
		child := exec.Command("/bin/cat") // until the test closes its end
		child.Stdin = file
		if child.Start() != nil {
			os.Exit(1)
		}
		return
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		os.Exit(1)
	}
	if os.Getuid() == 0 { // as newuidmap lets a program of any user
		file, err := conn.(*net.TCPConn).File()
		if err != nil || file.Chown(nobody, nobody) != nil {
			os.Exit(1)
		}
	}
	_, _ = conn.Read(make([]byte, 1)) // until the test closes its end
}

// dialFromProgram has a program of an agent connect to a listener, and returns the accepted connection.
func dialFromProgram(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = Run(ctx, Spec{Argv: []string{os.Args[0]}, Env: []string{dialVar + "=" + l.Addr().String()}})
	}()
	taken, err := l.Accept()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err == nil {
			_ = taken.Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// TestAttackSocketOfAnotherUser: a program of an agent has its socket under another user.
func TestAttackSocketOfAnotherUser(t *testing.T) {
	t.Parallel()
	taken := dialFromProgram(t, listenLoopback(t))
	there, here := taken.RemoteAddr().(*net.TCPAddr).AddrPort(), taken.LocalAddr().(*net.TCPAddr).AddrPort()
	waitUntil(t, func() bool { return os.Getuid() != 0 || !socketsBetween(there, here).own })
	if !IsAgentPeer(taken) {
		t.Error("a program of an agent passes by the user of its socket")
	}
	for _, s := range []peerSockets{socketsBetween(there, here), listedSockets(there.Port(), here.Port())} {
		s.own = false
		if !isHeldByAgent(s, nil) {
			t.Errorf("%+v: a program of an agent passes with a socket of another user", s)
		}
	}
	mine, taken := dialPair(t, "tcp", "127.0.0.1:0")
	s := socketsBetween(mine.LocalAddr().(*net.TCPAddr).AddrPort(), taken.LocalAddr().(*net.TCPAddr).AddrPort())
	s.own = false
	if isHeldByAgent(s, nil) {
		t.Error("another user counts as a program of an agent")
	}
}

// TestAttackNumberOfAnotherProcess: a program connects by the socket, leaves the connection to a child and ends. Another
// process that gets its number is not the peer.
func TestAttackNumberOfAnotherProcess(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := dialFromProgram(t, l).(*net.UnixConn)
	raw, err := taken.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var who *unix.Ucred
	handle, failed := -1, error(nil)
	err = raw.Control(func(fd uintptr) {
		who, _ = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		handle, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	})
	if err != nil || who == nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool { return parentOf(int(who.Pid)) < 0 })
	if !IsAgentPeer(taken) {
		t.Error("a connection whose program has ended passes")
	}
	if failed != nil {
		return // this kernel gives no handle of a process that has ended, or of none
	}
	defer func() { _ = unix.Close(handle) }()
	if !isAgentHandle(handle, int(who.Pid), func(int) bool { return false }) {
		t.Error("a process that has got the number of the program passes")
	}
}
