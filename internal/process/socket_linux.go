package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Sizes of struct inet_diag_req_v2, struct inet_diag_sockid in it, and struct inet_diag_msg (linux/inet_diag.h).
const (
	socketRequestSize = 56
	socketIDSize      = 48
	socketReplySize   = 72
)

// tcpSocket is an open TCP socket of this machine.
type tcpSocket struct {
	inode uint32
	uid   uint32
}

var errNoSocket = errors.New("no socket has these addresses")

// findSocket asks the kernel for the TCP socket with two addresses, as its holder sees them. Its answer costs the same
// whatever else is connected; /proc/net/tcp is read in pieces, and a socket can be missing from it while others come
// and go. It returns errNoSocket if there is none or the socket has been closed.
func findSocket(local, remote netip.AddrPort) (tcpSocket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return tcpSocket{}, os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, socketRequest(local, remote), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return tcpSocket{}, os.NewSyscallError("sendto", err)
	}
	reply := make([]byte, os.Getpagesize())
	n, _, err := unix.Recvfrom(fd, reply, 0)
	if err != nil {
		return tcpSocket{}, os.NewSyscallError("recvfrom", err)
	}
	return readSocket(reply[:n])
}

// socketRequest returns the request for one socket.
func socketRequest(local, remote netip.AddrPort) []byte {
	host := binary.NativeEndian
	b := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+socketRequestSize)
	host.PutUint32(b, uint32(cap(b)))
	host.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	host.PutUint16(b[6:], unix.NLM_F_REQUEST)
	family := byte(unix.AF_INET6)
	if local.Addr().Unmap().Is4() {
		family = unix.AF_INET
	}
	const allStates = 1<<32 - 1
	b = append(b, family, unix.IPPROTO_TCP, 0, 0)
	b = host.AppendUint32(b, allStates)
	id := len(b)
	b = binary.BigEndian.AppendUint16(b, local.Port())
	b = binary.BigEndian.AppendUint16(b, remote.Port())
	b = append(b, make([]byte, socketIDSize-4)...)
	copy(b[id+4:], local.Addr().Unmap().AsSlice())
	copy(b[id+20:], remote.Addr().Unmap().AsSlice())
	host.PutUint32(b[id+36:], interfaceOf(local.Addr()))
	for i := id + 40; i < id+socketIDSize; i++ { // no cookie: any socket with these addresses
		b[i] = 0xff
	}
	return b
}

// interfaceOf returns the index of the interface that the zone of an address names: the same address of a link may be on
// each link of the machine, so the kernel finds no socket of one without it. It returns 0 for an address without a zone.
func interfaceOf(a netip.Addr) uint32 {
	if a.Zone() == "" {
		return 0
	}
	if i, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(i.Index)
	}
	index, err := strconv.ParseUint(a.Zone(), 10, 32) // package net shows an interface without a name so
	if err != nil {
		return 0 // it was removed, and its sockets with it
	}
	return uint32(index)
}

// readSocket reads the reply to a request.
func readSocket(b []byte) (tcpSocket, error) {
	host := binary.NativeEndian
	if len(b) < unix.SizeofNlMsghdr+4 {
		return tcpSocket{}, fmt.Errorf("the kernel's reply has only %d bytes", len(b))
	}
	body := b[unix.SizeofNlMsghdr:]
	if host.Uint16(b[4:]) == unix.NLMSG_ERROR {
		if errno := unix.Errno(-int32(host.Uint32(body))); errno != unix.ENOENT {
			return tcpSocket{}, os.NewSyscallError("sock_diag", errno)
		}
		return tcpSocket{}, errNoSocket
	}
	if len(body) < socketReplySize {
		return tcpSocket{}, fmt.Errorf("the kernel's reply has only %d bytes", len(b))
	}
	s := tcpSocket{uid: host.Uint32(body[64:]), inode: host.Uint32(body[68:])}
	if s.inode == 0 || body[1] == unix.BPF_TCP_LISTEN { // it waits for late packets; or none has these addresses, and another program listens there
		return tcpSocket{}, errNoSocket
	}
	return s, nil
}
