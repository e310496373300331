package statedir

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// peerUser is the user id of the process at the other end.
func peerUser(fd int) (int, error) {
	who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(who.Uid), nil
}

func checkPeer(conn *net.UnixConn) error { return checkPeerUser(conn, peerUser) }

// socketAddress returns an address for a path; done may be called once the address was used.
// A path that is too long is reached through a descriptor of its directory.
func socketAddress(path string) (address string, done func(), err error) {
	if len(path) <= socketPathMax {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	done = func() { _ = dir.Close() } // the directory was opened only for reading
	address = fmt.Sprintf("/proc/self/fd/%d", dir.Fd())
	if _, err := os.Stat(address); err != nil {
		done()
		return "", nil, errLongPath // there is no /proc
	}
	return filepath.Join(address, filepath.Base(path)), done, nil
}
