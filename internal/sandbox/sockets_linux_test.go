package sandbox

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Neither a network namespace nor Landlock keeps a command from a socket with a
// name, not even in a directory that it may not read: the session bus runs
// programs outside of any sandbox (T9).
func TestNoSocketWithANameIsReached(t *testing.T) {
	dir, err := os.MkdirTemp("/run", "troupe-test-")
	if err != nil { // an ordinary user: any place outside of what a command may write
		dir = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	stream, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	reached := make(chan struct{}, 8)
	go func() {
		for {
			c, err := stream.Accept()
			if err != nil {
				return
			}
			reached <- struct{}{}
			_ = c.Close()
		}
	}()
	datagrams, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "d"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = datagrams.Close() }()
	for name, less := range map[string]Less{"all": {}, "without namespaces": {Namespaces: true}} {
		inside := t.TempDir()
		copyBinary(t, inside)
		out, err := Run(t.Context(), Spec{Dir: inside, Less: less, Env: []string{reaching + "=" + dir, alone + "=" + name}, Command: "./me -test.run '^TestSocketsFromInsideHelper$' -test.v"})
		text := string(out.Stdout)
		if err != nil || out.Exit != 0 || !strings.Contains(text, "stream: socket: ") || strings.Count(text, "datagrams: socketpair: ") != len(paths) || !strings.Contains(text, "pairs: <nil>") {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
	_ = datagrams.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := datagrams.Read(make([]byte, 8)); err == nil {
		t.Errorf("%d bytes came out", n)
	}
	if len(reached) > 0 {
		t.Error("a server outside was reached")
	}
}

// paths are the kinds of pairs that can be led to another socket afterwards. A raw
// one of AF_UNIX is one of datagrams, and no kind may hide behind a flag.
var paths = []int{
	unix.SOCK_DGRAM, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK,
	unix.SOCK_RAW, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.SOCK_RAW | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC,
	unix.SOCK_RDM, unix.SOCK_DCCP, unix.SOCK_PACKET,
}

// reaching tells this very test, run inside the sandbox, where the sockets are.
const reaching = "TROUPE_TEST_REACHING"

// alone tells it what the system has: "all" has a network namespace.
const alone = "TROUPE_TEST_ALONE"

func copyBinary(t *testing.T, into string) {
	t.Helper()
	me, err := os.Executable()
	if err == nil {
		var raw []byte
		if raw, err = os.ReadFile(me); err == nil {
			err = os.WriteFile(filepath.Join(into, "me"), raw, 0o755)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSocketsFromInsideHelper is what the command of the test above does.
func TestSocketsFromInsideHelper(t *testing.T) {
	dir := os.Getenv(reaching)
	if dir == "" {
		return
	}
	_, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	t.Log("stream:", os.NewSyscallError("socket", err))
	for _, kind := range paths {
		pair, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
		t.Log("datagrams:", os.NewSyscallError("socketpair", err))
		if err == nil {
			t.Errorf("a pair of kind %#x sent to a name outside: %v", kind, unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: filepath.Join(dir, "d")}))
		}
	}
	_, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	_, err2 := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	t.Log("pairs:", errors.Join(err, err2))
	for family := 1; family < unix.AF_MAX; family++ {
		fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		own := os.Getenv(alone) == "all" && (family == unix.AF_INET || family == unix.AF_INET6 || family == unix.AF_NETLINK) // of its network namespace
		if refused := errors.Is(err, unix.EACCES); refused == own {
			t.Errorf("sockets of family %d: %v", family, err)
		}
	}
	if c, err := net.Dial("unix", filepath.Join(dir, "s")); err == nil {
		t.Error("it was reached: ", c.Close())
	}
}
