// Package bus is everything about connecting to NATS: the embedded server and
// who may do what on it, connections to a server elsewhere, and every subject,
// stream and bucket name.
package bus

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// DefaultPort is where the embedded server listens if nobody else does.
	DefaultPort = 4222
	// FreePort asks for any free port.
	FreePort = -1
	// DefaultStoreMax is the most bytes JetStream may keep, if the disk has them.
	DefaultStoreMax = 16 << 30
	// DiskMargin is what is left free on the disk: a full disk shows as
	// publishes without an answer, a full stream as a clear error.
	DiskMargin = 1 << 30
	// StoreMin is the least that JetStream must be able to keep; with less a
	// node could not even end its runs in order.
	StoreMin = 96 << 20
	// MemoryMax bounds streams in memory (there are none but consumers' state).
	MemoryMax = 256 << 20
	// PayloadMax is the largest message the embedded server takes.
	PayloadMax = 1 << 20
	// PendingMax is how many bytes may wait in the server for one connection
	// before it is cut off: more than all readers of a node together may have
	// under way. What waits for a connection of the port is bounded by
	// PortPendingMax.
	PendingMax = 512 << 20
	// ControlLineMax is the most bytes of one line of the protocol, and SubjectsMax
	// how many subscriptions one connection may have.
	ControlLineMax = 4 << 10
	SubjectsMax    = 64 << 10
	// AuthTimeout is how long a connection may take to present its credential.
	AuthTimeout = 2 * time.Second

	readyTimeout = 30 * time.Second
	// inProcessWait is how often a connection inside the process looks for the server
	// while it is started again.
	inProcessWait = 50 * time.Millisecond
)

var (
	// ErrOwned: another process owns the state directory. Join it instead.
	ErrOwned = errors.New("bus: the state directory is in use by another process")
	// ErrStart: the embedded server did not start.
	ErrStart = errors.New("bus: the embedded server did not start")
)

// EmbeddedConfig is how an embedded server is started.
type EmbeddedConfig struct {
	// DontListen: there is neither a port nor a socket, and no node.json; only this
	// process can connect.
	DontListen bool
	// NoPort: commands of the same user connect by the socket in the state
	// directory. There is no port for observers.
	NoPort bool
	// ConfigHome is the directory of the user's configuration: the nats CLI context
	// of observers is written below it. Default: StateDir.
	ConfigHome string
	// Disk is told when the disk of StateDir becomes low or fails, and when it is well
	// again: by then the server was started again. It must not block. Default: nobody.
	Disk func(Disk)
	// Lazy: writes are synced every two minutes, not each before it is
	// acknowledged. It survives the death of the process, not of the machine.
	Lazy bool
	// Logger takes what the server logs. Default: discard.
	Logger *slog.Logger
	// Names are the subjects that the permissions speak of. Default: prefix "troupe".
	Names Names
	// Port on loopback. Default 0: DefaultPort, or else a free one. FreePort: a
	// free one. Any other must be free.
	Port int
	// StateDir is the directory to own; made if it is not there. Required.
	StateDir string
	// StoreMax is the most bytes JetStream may keep. Default DefaultStoreMax;
	// never more than the disk has, less DiskMargin.
	StoreMax int64
	// OpenWatch: connections without a credential may read events. OpenControl: they
	// may also ask for every verb but delete and prune. Without either they are
	// refused.
	OpenWatch, OpenControl bool
}

// Embedded is a NATS server in this process and the ownership of its directory.
type Embedded struct {
	cfg      EmbeddedConfig
	server   atomic.Pointer[server.Server] // replaced after its disk failed
	lock     *lockFile
	secrets  map[Role]string
	storeMax int64
	lowAt    int64 // free bytes below which the disk is low
	disk     *diskWatch
	watching bool   // the disk
	port     *front // observers; nil without a port
	socket   *front // commands of the same user; nil without a socket
	watch    watchContext

	closing sync.Once
	closed  error
}

// StartEmbedded takes the state directory (ErrOwned if somebody has it) and
// starts a server in it. The caller must Close it.
func StartEmbedded(cfg EmbeddedConfig) (*Embedded, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.StateDir == "" {
		return nil, fmt.Errorf("%w: no state directory given", ErrStart)
	}
	if err := checkForm(cfg.StateDir); err != nil {
		return nil, err
	}
	if err := claimDir(cfg.StateDir, cfg.Logger); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	// Before anything else looks at the directory: two servers in one lose
	// entries that were acknowledged.
	lock, err := takeLock(filepath.Join(cfg.StateDir, lockName))
	if err != nil {
		return nil, err
	}
	e := &Embedded{cfg: cfg, lock: lock, secrets: map[Role]string{}, disk: newDiskWatch()}
	for _, role := range roles {
		e.secrets[role] = rand.Text()
	}
	err = writeForm(cfg.StateDir)
	if err == nil {
		err = e.start()
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Embedded) start() error {
	var err error
	e.storeMax, err = storeMax(e.cfg.StateDir, e.cfg.StoreMax)
	if err == nil {
		e.lowAt, err = lowAt(e.cfg.StateDir)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	if e.storeMax < StoreMin {
		return fmt.Errorf("%w: there is room for %d MiB in %s, %d MiB are needed: free some disk space or choose another directory",
			ErrStart, e.storeMax>>20, e.cfg.StateDir, StoreMin>>20)
	}
	if err := e.listen(); err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	if err := e.serve(); err != nil {
		return err
	}
	e.watching = true
	go e.watchDisk()
	if e.cfg.DontListen {
		return nil
	}
	for _, f := range []*front{e.port, e.socket} {
		if f != nil {
			f.open(e.InProcessConn)
		}
	}
	if e.port != nil {
		e.watch = e.writeContext()
	}
	return e.announce()
}

// listen opens the socket and the port. Connections wait until the server is there.
func (e *Embedded) listen() error {
	if e.cfg.DontListen {
		return nil
	}
	l, err := listenSocket(e.cfg.StateDir)
	if err != nil {
		return err
	}
	portMax, socketMax := e.connections()
	e.socket = newFront(l, socketMax, 0)
	if e.cfg.NoPort {
		return nil
	}
	port := e.cfg.Port
	if port == 0 {
		port = DefaultPort
	}
	tcp, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(max(port, 0))))
	if err != nil && e.cfg.Port == 0 {
		tcp, err = net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	}
	if err != nil {
		return fmt.Errorf("bus: cannot listen: %w", err)
	}
	e.port = newFront(tcp, portMax, PortPendingMax)
	return nil
}

// serve starts the server. It has no listener of its own, so one that takes its place
// is reached as it was.
func (e *Embedded) serve() error {
	log := &serverLog{Logger: e.cfg.Logger, failed: e.disk.suspect}
	options, err := e.options()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	s, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	s.SetLogger(log, false, false)
	s.Start()
	switch {
	case log.fatal() != "":
		err = errors.New(log.fatal())
	case !s.ReadyForConnections(readyTimeout):
		err = errors.New("not ready in time")
	case !s.JetStreamEnabled():
		err = errors.New("JetStream is off")
	default:
		err = e.separate(s)
	}
	if err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	e.server.Store(s)
	return nil
}

const loopback = "127.0.0.1"

func (e *Embedded) options() (*server.Options, error) {
	watchers, err := watcherAccount()
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		ServerName:             e.cfg.Names.Prefix(),
		Host:                   loopback,
		DontListen:             true,
		NoSigs:                 true,
		NoSystemAccount:        true,
		JetStream:              true,
		StoreDir:               e.cfg.StateDir,
		SyncAlways:             !e.cfg.Lazy,
		JetStreamMaxStore:      e.storeMax,
		JetStreamMaxMemory:     MemoryMax,
		DisableJetStreamBanner: true,
		MaxPayload:             PayloadMax,
		MaxPending:             PendingMax,
		MaxControlLine:         ControlLineMax,
		MaxSubs:                SubjectsMax,
		AuthTimeout:            AuthTimeout.Seconds(),
		Accounts:               []*server.Account{watchers},
		Users:                  e.users(watchers),
	}
	if e.cfg.OpenWatch || e.cfg.OpenControl {
		o.NoAuthUser = string(roleAnyone)
	}
	return o, nil
}

// URL is where the server listens, "" without a port.
func (e *Embedded) URL() string {
	if e.port == nil {
		return ""
	}
	return "nats://" + e.port.listener.Addr().String()
}

// Watch is the command that observes this server, without its arguments: as in
// nats --context troupe. "" without a port.
func (e *Embedded) Watch() string { return e.watch.command }

// Options are how another process of this user connects in a role: by the socket.
func (e *Embedded) Options(role Role) Options {
	user, password := e.Credential(role)
	return Options{Owner: e.cfg.StateDir, User: user, Password: password}
}

// StoreMax is the most bytes that JetStream may keep here; streams reserve
// their limits out of it.
func (e *Embedded) StoreMax() int64 { return e.storeMax }

// Shares divides StoreMax: what the logs and the blobs may reserve beside the
// buckets, each at most its default.
func (e *Embedded) Shares() (logs, blobs int64) {
	const buckets = 3
	half := (e.storeMax - buckets*BucketBytesMax - GateBytesMax) / 2
	return min(half, DefaultLogBytesMax), min(half, DefaultBlobBytesMax)
}

// StateDir is the directory that is owned.
func (e *Embedded) StateDir() string { return e.cfg.StateDir }

// Credential is how somebody connects in a role, as long as this server runs.
func (e *Embedded) Credential(role Role) (user, password string) {
	return string(role), e.secrets[role]
}

// running is the server of now.
func (e *Embedded) running() *server.Server { return e.server.Load() }

// InProcessConn connects to the server of now.
func (e *Embedded) InProcessConn() (net.Conn, error) { return e.running().InProcessConn() }

// Connect makes a connection inside the process in a role. Only RoleNode may
// touch logs and leases; what answers requests from outside must use
// RoleService.
func (e *Embedded) Connect(role Role, options ...nats.Option) (*nats.Conn, error) {
	user, password := e.Credential(role)
	all := append([]nats.Option{
		nats.InProcessServer(e),
		nats.UserInfo(user, password),
		privateInbox(InboxPrefix(role)),
		nats.MaxReconnects(-1), nats.ReconnectWait(inProcessWait), nats.ReconnectJitter(0, 0),
		nats.Name(e.cfg.Names.Prefix() + " " + user),
	}, options...)
	nc, err := nats.Connect("", all...)
	if err != nil {
		return nil, fmt.Errorf("bus: connect as %s: %w", role, err)
	}
	return nc, nil
}

// Close stops the server and gives the directory back. Connections should be
// closed before.
func (e *Embedded) Close() error {
	e.closing.Do(func() {
		var errs []error
		if !e.cfg.DontListen {
			errs = append(errs, removeNodeFile(e.cfg.StateDir), e.watch.remove())
		}
		for _, f := range []*front{e.port, e.socket} {
			if f != nil {
				errs = append(errs, f.refuse())
			}
		}
		if e.watching {
			e.disk.close()
		}
		if s := e.running(); s != nil {
			s.Shutdown()
			s.WaitForShutdown()
		}
		for _, f := range []*front{e.port, e.socket} {
			if f != nil {
				f.end()
			}
		}
		e.closed = errors.Join(append(errs, e.lock.release())...)
	})
	return e.closed
}

// storeMax is how much JetStream may keep in dir: what it keeps now and what
// the disk has free, less a margin, but at most want.
func storeMax(dir string, want int64) (int64, error) {
	if want == 0 {
		want = DefaultStoreMax
	}
	free, err := diskFree(dir)
	if err != nil {
		return 0, fmt.Errorf("free disk space of %s: %w", dir, err)
	}
	var used int64
	err = filepath.WalkDir(filepath.Join(dir, "jetstream"), func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // Not there yet, or going away: then it is not used.
		}
		if info, err := d.Info(); err == nil {
			used += info.Size()
		}
		return nil
	})
	return min(want, used+free-min(DiskMargin, free/2)), err
}
