package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"
	"github.com/nats-io/nats-server/v2/server"
)

const (
	lockName     = "owner.lock"
	nodeFileName = "node.json"
	// nodeFileMax is the most bytes of a node.json that are read.
	nodeFileMax = 64 << 10
)

// ErrNodeFile: a node.json is not one that a troupe of this user has written. It
// says where prompts go, so it is not followed.
var ErrNodeFile = errors.New("bus: node.json cannot be trusted")

// StateDir is where troupe keeps its state: dir if it is given, or else
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
	// Watch is Embedded.Watch.
	Watch string `json:"watch,omitempty"`
	// Durability is DurabilitySync or DurabilityLazy, as the owner started.
	Durability string `json:"durability,omitempty"`
	// Version is the release of nats-server.
	Version string `json:"version,omitempty"`
}

// ReadNodeFile reads node.json of a state directory. Without one the error is
// ErrNoServer; one that is there may still be left from a process that died. One
// that is not ours is ErrNodeFile.
func ReadNodeFile(dir string) (NodeFile, error) {
	var n NodeFile
	path := filepath.Join(dir, nodeFileName)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return n, fmt.Errorf("%w: there is no %s", ErrNoServer, path)
	}
	if err != nil {
		return n, fmt.Errorf("bus: %w", err)
	}
	if err := ours(info); err != nil {
		return n, fmt.Errorf("%w: %s %w", ErrNodeFile, path, err)
	}
	if err := privateDir(dir); err != nil {
		return n, fmt.Errorf("%w: %w: chmod 700 %s", ErrNodeFile, err, dir)
	}
	if info.Size() > nodeFileMax {
		return n, fmt.Errorf("bus: %s has %d bytes", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return n, fmt.Errorf("bus: %w", err)
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, fmt.Errorf("bus: %s: %w", path, err)
	}
	if n.Address != "" && !here(n.Address) {
		return n, fmt.Errorf("%w: %s names the address %.200q, which is not one of this machine alone (nats://127.0.0.1:PORT)", ErrNodeFile, path, n.Address)
	}
	if n.Socket == "" {
		return n, fmt.Errorf("%w: %s names no socket", ErrNoServer, path)
	}
	return n, nil
}

var errIrregular = errors.New("is no regular file")

// ours: a node.json is a file that this user has written and nobody else can read,
// as announce makes it.
func ours(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errIrregular
	}
	return private(info)
}

// here: an address is one of loopback, as the embedded server has it.
func here(address string) bool {
	host, ok := strings.CutPrefix(address, "nats://")
	at, err := netip.ParseAddrPort(host)
	return ok && err == nil && at.Addr().IsLoopback()
}

// announce writes node.json, whole or not at all.
func (e *Embedded) announce() error {
	user, password := e.Credential(RoleClient)
	data, err := json.Marshal(NodeFile{
		Address: e.URL(), Socket: e.socket.listener.(*socket).path, User: user, Password: password, PID: os.Getpid(),
		Prefix: e.cfg.Names.prefix, Watch: e.Watch(), Durability: durability(e.cfg.Lazy), Version: server.VERSION,
	})
	if err == nil {
		err = replaceFile(NodeFilePath(e.cfg.StateDir), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("bus: write %s: %w", nodeFileName, err)
	}
	return nil
}

// replaceFile writes a file that only this user can read, whole or not at all.
func replaceFile(path string, data []byte) error {
	// CreateTemp makes it 0600.
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func removeNodeFile(dir string) error {
	err := os.Remove(filepath.Join(dir, nodeFileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("bus: %w", err)
	}
	return nil
}

// lockFile is a lock of the operating system: it ends with the process, however
// that ends. The file stays; removing it would let two processes lock two files.
type lockFile struct{ f *os.File }

func takeLock(path string) (*lockFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	held, err := tryLock(f)
	if err != nil {
		return nil, fmt.Errorf("bus: lock %s: %w", path, errors.Join(err, f.Close()))
	}
	if held {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrOwned, filepath.Dir(path)), f.Close())
	}
	return &lockFile{f}, nil
}

func (l *lockFile) release() error {
	if err := errors.Join(unlock(l.f), l.f.Close()); err != nil {
		return fmt.Errorf("bus: unlock: %w", err)
	}
	return nil
}
