//go:build darwin || freebsd

package statedir

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUser is the user id of the process at the other end.
func peerUser(fd int) (int, error) {
	const level = 0 // SOL_LOCAL
	who, err := unix.GetsockoptXucred(fd, level, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(who.Uid), nil
}

func checkPeer(conn *net.UnixConn) error { return checkPeerUser(conn, peerUser) }
