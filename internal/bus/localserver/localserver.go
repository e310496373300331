// Package localserver defines the interface of a NATS server in this process, and its configuration. A main function
// passes in the implementation, embedded.StartServer: so packages that may start a server, and their tests, do not link it.
package localserver

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

const (
	// FreePort asks for any free port.
	FreePort = -1
	// DiskMargin is the free space to leave on the disk: a full disk shows as publishes
	// without an answer, a full stream as a clear error.
	DiskMargin = 1 << 30
	// StoreMin is the least that JetStream must be able to store; with less, a node could not
	// even end its runs in order.
	StoreMin = 96 << 20
)

// ErrStart says that the embedded server did not start.
var ErrStart = errors.New("embedded: the embedded server did not start")

// Config is the configuration of an embedded server.
type Config struct {
	// DontListen omits the port, the socket and node.json: only this process can connect.
	DontListen bool
	// NoPort omits the port for observers. Commands of the same user connect by the socket in
	// the state directory.
	NoPort bool
	// ConfigHome is the directory of the user's configuration: the nats CLI context
	// of observers is written below it. Default: StateDir.
	ConfigHome string
	// OnDiskChange is called when the disk of StateDir becomes low or fails, and when it has
	// recovered: by then the server has been restarted. It must not block. Default: no calls.
	OnDiskChange func(statedir.DiskState)
	// Lazy syncs writes every two minutes instead of before each acknowledgement. Acknowledged
	// writes survive the death of the process, but not of the machine.
	Lazy bool
	// Logger receives the server's log. Default: discard.
	Logger *slog.Logger
	// LogStore is the store that must hold the logs of StateDir (statedir.ClaimLogStore).
	// Default: the one that does.
	LogStore string
	// Names builds the subjects of the permissions. Default: prefix "troupe".
	Names names.Names
	// Port is a port on loopback. Default 0: 4222, or a free one if that is taken.
	// FreePort: a free one. Any other must be free.
	Port int
	// StateDir is the directory to own; it is created if missing. Required.
	StateDir string
	// StoreMax is the most bytes that JetStream may store. Default 16 GiB; never more
	// than the disk has, less DiskMargin.
	StoreMax int64
	// OpenWatch lets connections without a credential read events. OpenControl also lets them
	// use every verb but delete and prune. Without either they are refused.
	OpenWatch, OpenControl bool
}

// StartFunc starts a server in the state directory of its configuration, which it acquires first: statedir.ErrOwned if
// another process owns it. The caller must close the server.
type StartFunc func(Config) (Server, error)

// Start starts a server, if the program has one.
func (start StartFunc) Start(cfg Config) (Server, error) {
	if start == nil {
		return nil, fmt.Errorf("%w: this program has none (node.Config.StartServer); name a server with -s, or in the configuration of the bus", ErrStart)
	}
	return start(cfg)
}

// Server is a NATS server in this process, together with the ownership of its state directory.
type Server interface {
	bus.ServerWitness
	// URL is the address where the server listens, "" without a port.
	URL() string
	// WatchCommand is the nats command line that connects as an observer, without a subcommand; "" without a port.
	WatchCommand() string
	// AnnounceHTTP records the address of an HTTP server of the process for other commands of the user.
	AnnounceHTTP(url string) error
	// Connect opens a connection inside the process in a role.
	Connect(role bus.Role, options ...nats.Option) (*nats.Conn, error)
	// ConnectOptions are the options by which another process of this user connects in a role.
	ConnectOptions(role bus.Role) bus.Options
	// Credential returns the user and password of a role, valid as long as this server runs.
	Credential(role bus.Role) (user, password string)
	// HasInterest reports whether the server would deliver a message on the subject now.
	HasInterest(subject string) bool
	// StateDir is the directory that is owned, and LogStore the store that holds its logs.
	StateDir() string
	LogStore() string
	// StoreShares is how much the logs and the blobs may reserve.
	StoreShares() (logs, blobs int64)
	// Close stops the server and releases the directory.
	Close() error
}
