package bus

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
)

// A later command proves the server by the socket in the state directory before it
// sends a byte: the directory is this user's and closed to all others (0700), and the
// process at the other end is this user's. A port proves nothing: after a kill -9
// another account may listen on the one that node.json names. TLS with a pinned
// certificate was the alternative; it needs a key in the directory and protects no
// better, for whoever can read the key can open the socket.

const (
	socketName = "nats.sock"
	// socketPathMax is the most bytes that the address of a socket may have on every
	// system; Linux takes 108, macOS 104, each with the zero at the end.
	socketPathMax = 103
)

// ErrStateDir: other users can write to the directory, so it cannot hold state.
var ErrStateDir = errors.New("bus: the state directory is not private")

// claimDir makes a state directory, or makes sure that one is private: it is this
// user's, and no other may enter it. One that was made with a wider mode is tightened
// if it is empty, or holds troupe's state and others could read it only: what others
// could write may decide what a node executes.
func claimDir(dir string, log *slog.Logger) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	err := privateDir(dir)
	if !errors.Is(err, errMode) {
		return errors.Join(err, checkOwners(dir))
	}
	if entries, readErr := os.ReadDir(dir); readErr != nil || len(entries) > 0 {
		if info, statErr := os.Stat(dir); statErr != nil || info.Mode().Perm()&othersWrite != 0 {
			return fmt.Errorf("%w: %w", ErrUntrusted, err)
		}
		if _, statErr := os.Lstat(filepath.Join(dir, lockName)); statErr != nil {
			return fmt.Errorf("%w; it holds other files, so it is left as it is: chmod 700 %s, or choose another --store-dir", err, dir)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrStateDir, err)
	}
	log.Info("the state directory was open to others; its mode is 0700 now", "dir", dir)
	return errors.Join(privateDir(dir), checkOwners(dir))
}

// othersWrite are the mode bits that let others write.
const othersWrite = 0o022

// checkOwners refuses a directory in which another user has put something, for
// instance just before its mode was tightened.
func checkOwners(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStateDir, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // a temporary file of the owner
		}
		if err == nil {
			err = ownedBySelf(info)
		}
		if err != nil {
			return fmt.Errorf("%w: %s %w: choose another --store-dir", ErrStateDir, filepath.Join(dir, e.Name()), err)
		}
	}
	return nil
}

// ErrUntrusted: others could write in a state directory, so what it holds may be theirs.
// The error is also ErrStateDir.
var ErrUntrusted = errors.New("bus: others could write in the state directory, so what it holds is not trusted")

// errMode: a directory has a mode that lets others in.
var errMode = fmt.Errorf("%w: its mode lets others in", ErrStateDir)

// privateDir reports whether a directory is this user's and closed to others.
func privateDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return closedDir(dir, info)
}

func closedDir(dir string, info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is no directory", ErrStateDir, dir)
	}
	if err := ownedBySelf(info); err != nil {
		return fmt.Errorf("%w: %s %w: choose another --store-dir", ErrStateDir, dir, err)
	}
	if mode, open := opened(info); open {
		return fmt.Errorf("%w: %s has the mode %#o", errMode, dir, mode)
	}
	return nil
}

// socket is the listener of the state directory.
type socket struct {
	*net.UnixListener
	path string
	temp string // directory to remove with it
}

// listenSocket listens in a state directory, whose lock is held: what a process that
// died left there is replaced. Where the path is too long for the system, the socket
// is in a private directory for temporary files, and node.json says where.
func listenSocket(dir string) (*socket, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("bus: socket: %w", err)
	}
	s := &socket{path: filepath.Join(abs, socketName)}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("bus: socket: %w", err)
	}
	address, done, err := socketAddress(s.path)
	if errors.Is(err, errLong) {
		if s.temp, err = os.MkdirTemp("", "troupe-"); err != nil {
			return nil, fmt.Errorf("bus: socket: %w", err)
		}
		s.path = filepath.Join(s.temp, socketName)
		address, done, err = socketAddress(s.path)
	}
	if err != nil {
		return nil, fmt.Errorf("bus: socket: %w", errors.Join(err, s.clean()))
	}
	defer done()
	if s.UnixListener, err = net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"}); err != nil {
		return nil, fmt.Errorf("bus: socket %s: %w", s.path, errors.Join(err, s.clean()))
	}
	s.SetUnlinkOnClose(false) // its address may be one that is gone by then
	if err := os.Chmod(s.path, 0o600); err != nil {
		return nil, fmt.Errorf("bus: socket: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

// Accept implements net.Listener. Connections of other users are closed.
func (s *socket) Accept() (net.Conn, error) {
	for {
		conn, err := s.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if checkPeer(conn) == nil {
			return conn, nil
		}
		_ = conn.Close() // nothing was said yet
	}
}

// Close implements net.Listener, and removes the socket.
func (s *socket) Close() error {
	if err := s.UnixListener.Close(); err != nil {
		return err
	}
	return s.clean()
}

func (s *socket) clean() error {
	err := os.Remove(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if s.temp != "" {
		err = errors.Join(err, os.Remove(s.temp))
	}
	return err
}

// errLong: the address of a socket has too many bytes.
var errLong = errors.New("the path of the socket is too long")

// errPeer: the process at the other end of a socket is not this user's.
var errPeer = errors.New("bus: the process at the other end of the socket is of another user")

// ownerDialer connects to the owner of a state directory, first and again: each time
// it reads node.json anew and proves the server before a byte is sent. It is the only
// way such a connection takes, whatever addresses servers tell it.
type ownerDialer struct{ dir string }

// Dial implements nats.CustomDialer.
func (d ownerDialer) Dial(string, string) (net.Conn, error) {
	file, err := ReadNodeFile(d.dir)
	if err != nil {
		return nil, err
	}
	if err := privateDir(filepath.Dir(file.Socket)); err != nil {
		return nil, fmt.Errorf("%w: %s: its socket: %w", ErrNodeFile, NodeFilePath(d.dir), err)
	}
	address, done, err := socketAddress(file.Socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNodeFile, NodeFilePath(d.dir), err)
	}
	defer done()
	dialer := net.Dialer{Timeout: DefaultTimeout}
	conn, err := dialer.Dial("unix", address)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrNoServer, file.Socket, err)
	}
	if err := checkPeer(conn.(*net.UnixConn)); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNodeFile, err), conn.Close())
	}
	return conn, nil
}
