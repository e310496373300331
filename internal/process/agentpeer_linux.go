package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/internal/process/keeper"
)

// ancestorsMax bounds the walk to the first process.
const ancestorsMax = 4096

// IsAgentPeer reports whether the other end of a local connection is held by a program that a node has started for an
// agent (the command of a tool or a hook, an MCP server), or by a descendant of one. Such a program runs below a
// keeper or the helper of the sandbox, whatever its environment, group or session: a keeper is a subreaper. It is
// also true if no process has that end open, because then its holder is unknown: it has closed, or its descriptor is on
// its way between processes. It is false for other machines.
func IsAgentPeer(conn net.Conn) bool {
	if local, ok := conn.(*net.UnixConn); ok {
		return isAgentUnixPeer(local)
	}
	return IsAgentPeerTCP(conn.RemoteAddr().String(), conn.LocalAddr().String())
}

// isAgentUnixPeer asks the kernel which process has connected.
func isAgentUnixPeer(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	var who *unix.Ucred
	var failed error
	handle := -1
	if err := raw.Control(func(fd uintptr) {
		if who, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); failed != nil {
			return
		}
		handle, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	}); err != nil || who == nil {
		return true
	}
	if who.Pid <= 0 { // of another namespace of processes, in which no program of this node can be
		return false
	}
	if errors.Is(failed, unix.ENOPROTOOPT) { // before Linux 6.5
		return isAgentProcess(int(who.Pid))
	}
	if failed != nil {
		return true // it has ended
	}
	defer func() { _ = unix.Close(handle) }()
	return isAgentHandle(handle, int(who.Pid), isAgentProcess)
}

// isAgentHandle is isAgentProcess for the process of a handle. A program may connect, hand its connection to a child and
// end: its number then is free, and another process may get it.
func isAgentHandle(handle, pid int, isAgent func(pid int) bool) bool {
	return isAgent(pid) || errors.Is(unix.PidfdSendSignal(handle, 0, nil, 0), unix.ESRCH)
}

// IsAgentPeerTCP is IsAgentPeer for the two addresses of a TCP connection, as the server sees them.
func IsAgentPeerTCP(remote, local string) bool {
	there, err := netip.ParseAddrPort(remote)
	if err != nil || !isThisMachine(there.Addr(), net.InterfaceAddrs) {
		return false
	}
	here, err := netip.ParseAddrPort(local)
	if err != nil {
		return true
	}
	sockets := socketsBetween(there, here)
	if len(sockets.inodes) == 0 {
		return true // it has been closed
	}
	return isHeldByAgent(sockets, func() peerSockets { return socketsBetween(there, here) })
}

// isHeldByAgent reports whether an agent's program has one of these sockets open, or may have. again looks for them once more.
func isHeldByAgent(sockets peerSockets, again func() peerSockets) bool {
	pids, err := listProcesses()
	if err != nil {
		return true // nothing shows who it is
	}
	var others []int
	for _, pid := range pids {
		if !isAgentProcess(pid) {
			others = append(others, pid)
		} else if holdsSocket(pid, sockets.inodes) != heldNot {
			return true
		}
	}
	if !sockets.own { // of another user, whose processes hide what they have open
		return false
	}
	// Descriptors on their way between processes and registered files of io_uring are in no table: a socket without a
	// holder proves nothing.
	return !isHeldBy(others, sockets.inodes) || !slices.Equal(sockets.inodes, again().inodes)
}

// isHeldBy reports whether one of these processes has one of these sockets open. Few threads have a table of their own,
// so those of the first threads are read before the others.
func isHeldBy(pids []int, inodes []string) bool {
	return slices.ContainsFunc(pids, func(pid int) bool {
		return tableHolds(filepath.Join("/proc", strconv.Itoa(pid), "fd"), inodes) == heldOpen
	}) || slices.ContainsFunc(pids, func(pid int) bool { return holdsSocket(pid, inodes) == heldOpen })
}

// isThisMachine reports whether a peer's address is one of this machine: a program may dial any of them from any
// other. own lists the addresses of the interfaces; if it fails, nothing shows that the peer is elsewhere.
func isThisMachine(peer netip.Addr, own func() ([]net.Addr, error)) bool {
	peer = peer.Unmap().WithZone("")
	if peer.IsLoopback() {
		return true
	}
	list, err := own()
	return err != nil || slices.ContainsFunc(list, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == peer
	})
}

// peerSockets are the sockets that may be the other end of a connection. Those of this user (own) go before others: a
// program of an agent may have its socket under another user (setuid programs, the ids that newuidmap grants).
type peerSockets struct {
	inodes []string
	own    bool
}

// socketsBetween returns the sockets with these addresses.
func socketsBetween(local, remote netip.AddrPort) peerSockets {
	s, err := findSocket(local, remote)
	switch {
	case errors.Is(err, errNoSocket):
		return peerSockets{}
	case err != nil: // the kernel does not answer such questions, or a container does not let them through
		return listedSockets(local.Port(), remote.Port())
	}
	return peerSockets{[]string{strconv.FormatUint(uint64(s.inode), 10)}, s.uid == uint32(os.Getuid())}
}

// listedSockets is socketsBetween by the lists of all sockets, for any addresses with these ports.
func listedSockets(local, remote uint16) peerSockets {
	var own, foreign []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // there is no table of IPv6 without IPv6
		}
		for line := range bytes.Lines(text) {
			f := strings.Fields(string(line)) // sl local_address rem_address st queues timer retransmits uid timeout inode
			if len(f) < 10 || !strings.HasSuffix(f[1], fmt.Sprintf(":%04X", local)) || !strings.HasSuffix(f[2], fmt.Sprintf(":%04X", remote)) || f[9] == "0" {
				continue
			}
			if f[7] == strconv.Itoa(os.Getuid()) {
				own = append(own, f[9])
			} else {
				foreign = append(foreign, f[9])
			}
		}
	}
	if len(own) > 0 {
		return peerSockets{own, true}
	}
	return peerSockets{foreign, false}
}

// holding says whether a process has a socket open.
type holding int

const (
	heldNot holding = iota
	heldOpen
	heldUnknown // the process hides what it has open
)

// holdsSocket looks for sockets in the tables of descriptors of a process: each of its threads may have one of its own.
func holdsSocket(pid int, inodes []string) holding {
	threads := filepath.Join("/proc", strconv.Itoa(pid), "task")
	list, err := os.ReadDir(threads)
	if err != nil {
		if isGone(err) {
			return heldNot
		}
		return heldUnknown
	}
	worst := heldNot
	for _, thread := range list {
		switch tableHolds(filepath.Join(threads, thread.Name(), "fd"), inodes) {
		case heldOpen:
			return heldOpen
		case heldUnknown:
			worst = heldUnknown
		case heldNot:
		}
	}
	return worst
}

// isGone reports whether a process or a thread has ended before it was read.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// tableHolds looks for sockets in one table of descriptors.
func tableHolds(dir string, inodes []string) holding {
	files, err := os.ReadDir(dir)
	if isGone(err) {
		return heldNot
	}
	if err != nil {
		return heldUnknown
	}
	for _, f := range files {
		target, err := os.Readlink(filepath.Join(dir, f.Name()))
		if err == nil && slices.ContainsFunc(inodes, func(inode string) bool { return target == "socket:["+inode+"]" }) {
			return heldOpen
		}
	}
	return heldNot
}

// isAgentProcess walks from a process to the first ancestor that it shares with this one. A node that an
// agent's command has started, such as one of a test, is below a keeper itself, and so are its users: that
// keeper counts for nothing.
func isAgentProcess(pid int) bool {
	own := ancestorsOf(os.Getpid())
	for range 3 { // a parent that ends meanwhile leaves its children to another one
		list := ancestorsOf(pid)
		if len(list) == 0 {
			return true // it is gone
		}
		for _, p := range list {
			if slices.Contains(own, p) {
				return false
			}
			if isKeeper(p) {
				return true
			}
		}
		if last := list[len(list)-1]; last == 1 || parentOf(last) == 0 {
			return false
		}
	}
	return true
}

// ancestorsOf returns a process and its ancestors, as far as they can be read.
func ancestorsOf(pid int) []int {
	var list []int
	for len(list) < ancestorsMax && pid > 0 {
		parent := parentOf(pid)
		if parent < 0 {
			break
		}
		list = append(list, pid)
		pid = parent
	}
	return list
}

// parentOf returns the parent of a process; 0: it has none here, -1: the process is gone.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return -1
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // pid (name) state ppid …; a name may contain anything, including parentheses
	if len(fields) < 2 {
		return -1
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return -1
	}
	return parent
}

// isKeeper reports whether a process is a keeper, or the helper of the sandbox.
func isKeeper(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	name, _, _ := bytes.Cut(line, []byte{0})
	return string(name) == keeper.Name || string(name) == SandboxHelper
}

// listProcesses returns the ids of all processes that this one can see.
func listProcesses() ([]int, error) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var list []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n.Name()); err == nil && syscall.Kill(pid, 0) != syscall.ESRCH {
			list = append(list, pid)
		}
	}
	return list, nil
}
