//go:build linux || darwin || freebsd

package statedir

import (
	"fmt"
	"net"
	"os"
)

// checkPeerUser reports whether the process at the other end is this user's.
func checkPeerUser(conn *net.UnixConn, peerUser func(fd int) (int, error)) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("statedir: socket: %w", err)
	}
	uid, asked := -1, error(nil)
	if err := raw.Control(func(fd uintptr) { uid, asked = peerUser(int(fd)) }); err != nil {
		return fmt.Errorf("statedir: socket: %w", err)
	}
	if asked != nil {
		return fmt.Errorf("statedir: socket: %w", asked)
	}
	if uid != os.Geteuid() {
		return fmt.Errorf("%w (%d)", errForeignPeer, uid)
	}
	return nil
}
