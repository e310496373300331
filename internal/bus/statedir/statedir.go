// Package statedir is the state directory of troupe: its ownership and lock, the socket by
// which later commands of the same user reach the owner, node.json, its form, and the disk
// below it. It does not depend on NATS.
package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/adrg/xdg"
)

const (
	// LockName is the file that the owner keeps locked.
	LockName = "owner.lock"
	// NodeFileName is the file that says how to join the owner.
	NodeFileName = "node.json"
	// nodeFileMax is the most bytes of a node.json that are read.
	nodeFileMax = 64 << 10
)

// ErrNoServer says that no server answers at the address.
var ErrNoServer = errors.New("statedir: no NATS server")

// ErrOwned says that another process owns the state directory. Join it instead.
var ErrOwned = errors.New("statedir: the state directory is in use by another process")

// ErrNodeFile says that this user's troupe did not write a node.json. The file decides where
// prompts are sent, so it is not followed.
var ErrNodeFile = errors.New("statedir: node.json cannot be trusted")

// StateDir is the directory in which troupe keeps its state: dir if it is given, otherwise
// XDG_STATE_HOME/troupe.
func StateDir(dir string) string {
	if dir != "" {
		return dir
	}
	return filepath.Join(xdg.StateHome, "troupe")
}

// NodeFile is node.json: how a later command of the same user joins the owner
// of a state directory.
type NodeFile struct {
	// Address is where observers connect; "" without a port. Commands of the same
	// user connect by Socket.
	Address  string `json:"address"`
	Socket   string `json:"socket"`
	User     string `json:"user"`
	Password string `json:"password"`
	PID      int    `json:"pid"`
	Prefix   string `json:"prefix,omitempty"`
	// Watch is the WatchCommand of the embedded server.
	Watch string `json:"watch,omitempty"`
	// Durability is DurabilitySync or DurabilityLazy, as set when the owner started.
	Durability string `json:"durability,omitempty"`
	// HTTP is the address of the owner's HTTP server; "" without one.
	HTTP string `json:"http,omitempty"`
	// Version is the release of nats-server.
	Version string `json:"version,omitempty"`
}

// ReadNodeFile reads node.json of a state directory. If it is missing the error is
// ErrNoServer; an existing one may be left from a process that died. If the file fails the
// check of ours, the error is ErrNodeFile.
func ReadNodeFile(dir string) (NodeFile, error) {
	var n NodeFile
	path := filepath.Join(dir, NodeFileName)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return n, fmt.Errorf("%w: there is no %s", ErrNoServer, path)
	}
	if err != nil {
		return n, fmt.Errorf("statedir: %w", err)
	}
	if err := checkNodeFile(info); err != nil {
		return n, fmt.Errorf("%w: %s %w", ErrNodeFile, path, err)
	}
	if err := CheckPrivate(dir); err != nil {
		return n, fmt.Errorf("%w: %w: chmod 700 %s", ErrNodeFile, err, dir)
	}
	if info.Size() > nodeFileMax {
		return n, fmt.Errorf("statedir: %s has %d bytes", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return n, fmt.Errorf("statedir: %w", err)
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, fmt.Errorf("statedir: %s: %w", path, err)
	}
	if n.Address != "" && !isLoopback(n.Address) {
		return n, fmt.Errorf("%w: %s names the address %.200q, which is not one of this machine alone (nats://127.0.0.1:PORT)", ErrNodeFile, path, n.Address)
	}
	if n.Socket == "" {
		return n, fmt.Errorf("%w: %s names no socket", ErrNoServer, path)
	}
	return n, nil
}

// ErrIrregular says that a path is a link, a directory or a pipe instead of a file.
var ErrIrregular = errors.New("is not a regular file")

// checkNodeFile checks that this user has written a node.json and that no other user can read it, as
// announce creates it.
func checkNodeFile(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return ErrIrregular
	}
	return checkPrivateFile(info)
}

// isLoopback reports whether an address is on loopback, as that of an embedded server is.
func isLoopback(address string) bool {
	host, ok := strings.CutPrefix(address, "nats://")
	at, err := netip.ParseAddrPort(host)
	return ok && err == nil && at.Addr().IsLoopback()
}

// RemoveNodeFile removes node.json, if it is there.
func RemoveNodeFile(dir string) error {
	err := os.Remove(filepath.Join(dir, NodeFileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("statedir: %w", err)
	}
	return nil
}

// Lock is a lock of the operating system: it ends with the process, however the process ends.
// The file stays, because after removing it two processes could lock two files.
type Lock struct{ f *os.File }

// TakeLock takes the lock of a file, which it creates if missing. ErrOwned: another process
// holds it.
func TakeLock(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("statedir: %w", err)
	}
	held, err := tryLock(f)
	if err != nil {
		return nil, fmt.Errorf("statedir: lock %s: %w", path, errors.Join(err, f.Close()))
	}
	if held {
		return nil, errors.Join(fmt.Errorf("%w%s: %s", ErrOwned, lockHolder(f), filepath.Dir(path)), f.Close())
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // for the message of others; a full disk prevents no lock
	}
	return &Lock{f}, nil
}

// lockHolder returns the process that wrote its number into a lock file, as the end of a message.
func lockHolder(f *os.File) string {
	b := make([]byte, 16)
	n, _ := f.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil || pid <= 0 {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}

// Release releases the lock.
func (l *Lock) Release() error {
	if err := errors.Join(unlockFile(l.f), l.f.Close()); err != nil {
		return fmt.Errorf("statedir: unlock: %w", err)
	}
	return nil
}
