package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A later command verifies the server by the socket in the state directory before it sends a
// byte: the directory is this user's and closed to all others (0700), and the process at the
// other end is this user's. A port proves nothing: after a kill -9 another account may listen
// on the one that node.json names. TLS with a pinned certificate was the alternative; it
// needs a key in the directory and protects no better, because any process that can read the
// key can open the socket.

const (
	socketName = "nats.sock"
	// socketPathMax is the most bytes that a socket address may have on every system; Linux
	// allows 108, macOS 104, each including the terminating zero.
	socketPathMax = 103
	// dialTimeout ends an attempt to connect to the socket.
	dialTimeout = 5 * time.Second
)

// ErrStateDir says that other users can write to the directory, so it cannot hold state.
var ErrStateDir = errors.New("statedir: the state directory is not private")

// ClaimDir creates a state directory, or makes sure that an existing one is private: this
// user owns it, and no other may enter it. A directory with a wider mode is tightened if it
// is empty, or holds troupe's state and others could only read it: files that others could
// write may decide what a node executes.
func ClaimDir(dir string, log *slog.Logger) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	err := CheckPrivate(dir)
	if !errors.Is(err, errMode) {
		return errors.Join(err, checkOwners(dir))
	}
	if entries, readErr := os.ReadDir(dir); readErr != nil || len(entries) > 0 {
		if info, statErr := os.Stat(dir); statErr != nil || info.Mode().Perm()&othersWrite != 0 {
			return fmt.Errorf("%w: %w", ErrUntrusted, err)
		}
		if _, statErr := os.Lstat(filepath.Join(dir, LockName)); statErr != nil {
			return fmt.Errorf("%w; it holds other files, so it is left as it is: chmod 700 %s, or choose another --store-dir", err, dir)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrStateDir, err)
	}
	log.Info("the state directory was open to others; its mode is 0700 now", "dir", dir)
	return errors.Join(CheckPrivate(dir), checkOwners(dir))
}

// othersWrite are the mode bits that let others write.
const othersWrite = 0o022

// checkOwners refuses a directory in which another user has created a file, for instance just
// before its mode was tightened.
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

// ErrUntrusted says that others could write in a state directory, so its contents may be
// theirs. The error is also ErrStateDir.
var ErrUntrusted = errors.New("statedir: other users could write to the state directory, so its files are not trusted")

// errMode says that the mode of a directory gives others access.
var errMode = fmt.Errorf("%w: its mode lets others in", ErrStateDir)

// CheckPrivate reports whether a directory is this user's and closed to others.
func CheckPrivate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return checkClosedDir(dir, info)
}

func checkClosedDir(dir string, info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is not a directory", ErrStateDir, dir)
	}
	if err := ownedBySelf(info); err != nil {
		return fmt.Errorf("%w: %s %w: choose another --store-dir", ErrStateDir, dir, err)
	}
	if mode, open := accessByOthers(info); open {
		return fmt.Errorf("%w: %s has the mode %#o", errMode, dir, mode)
	}
	return nil
}

// Socket is the listener of the state directory.
type Socket struct {
	*net.UnixListener
	Path string
	temp string // directory to remove with the socket
}

// ListenSocket listens in a state directory whose lock the caller holds: it replaces a socket
// that a dead process left there. If the path is too long for the system, the socket is in a
// private directory for temporary files, and node.json names it.
func ListenSocket(dir string) (*Socket, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("statedir: socket: %w", err)
	}
	s := &Socket{Path: filepath.Join(abs, socketName)}
	if err := os.Remove(s.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("statedir: socket: %w", err)
	}
	address, done, err := socketAddress(s.Path)
	if errors.Is(err, errLongPath) {
		if s.temp, err = os.MkdirTemp("", "troupe-"); err != nil {
			return nil, fmt.Errorf("statedir: socket: %w", err)
		}
		s.Path = filepath.Join(s.temp, socketName)
		address, done, err = socketAddress(s.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("statedir: socket: %w", errors.Join(err, s.removeFiles()))
	}
	defer done()
	if s.UnixListener, err = net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"}); err != nil {
		return nil, fmt.Errorf("statedir: socket %s: %w", s.Path, errors.Join(err, s.removeFiles()))
	}
	s.SetUnlinkOnClose(false) // its address may be invalid by then
	if err := os.Chmod(s.Path, 0o600); err != nil {
		return nil, fmt.Errorf("statedir: socket: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

// Accept implements net.Listener. Connections of other users are closed.
func (s *Socket) Accept() (net.Conn, error) {
	for {
		conn, err := s.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if checkPeer(conn) == nil {
			return conn, nil
		}
		_ = conn.Close() // no byte was sent yet
	}
}

// Close implements net.Listener, and removes the socket.
func (s *Socket) Close() error {
	if err := s.UnixListener.Close(); err != nil {
		return err
	}
	return s.removeFiles()
}

func (s *Socket) removeFiles() error {
	err := os.Remove(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if s.temp != "" {
		err = errors.Join(err, os.Remove(s.temp))
	}
	return err
}

// errLongPath says that the address of a socket has too many bytes.
var errLongPath = errors.New("the path of the socket is too long")

// errForeignPeer says that the process at the other end of a socket is not this user's.
var errForeignPeer = errors.New("statedir: the process at the other end of the socket is of another user")

// OwnerDialer connects to the owner of a state directory, and reconnects: each time it reads
// node.json anew and verifies the server before it sends a byte. Such a connection uses no
// other address, whatever addresses servers announce.
type OwnerDialer struct{ Dir string }

// Dial implements nats.CustomDialer.
func (d OwnerDialer) Dial(string, string) (net.Conn, error) {
	file, err := ReadNodeFile(d.Dir)
	if err != nil {
		return nil, err
	}
	if err := CheckPrivate(filepath.Dir(file.Socket)); err != nil {
		return nil, fmt.Errorf("%w: %s: its socket: %w", ErrNodeFile, NodeFilePath(d.Dir), err)
	}
	address, done, err := socketAddress(file.Socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNodeFile, NodeFilePath(d.Dir), err)
	}
	defer done()
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.Dial("unix", address)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrNoServer, file.Socket, err)
	}
	if err := checkPeer(conn.(*net.UnixConn)); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNodeFile, err), conn.Close())
	}
	return conn, nil
}
