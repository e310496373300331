// Package embedded runs a NATS server in this process: its store in a state directory that
// the process owns, the permissions of its clients, and the disk below the store.
package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

const (
	// DefaultPort is where the embedded server listens if the port is free.
	DefaultPort = 4222
	// FreePort asks for any free port.
	FreePort = localserver.FreePort
	// DefaultStoreMax is the most bytes JetStream may keep, if the disk has them.
	DefaultStoreMax = 16 << 30
	// MemoryMax bounds streams in memory (only the state of consumers is in memory).
	MemoryMax = 256 << 20
	// PayloadMax is the largest message that the embedded server accepts.
	PayloadMax = 1 << 20
	// PendingMax is how many bytes may wait in the server for one connection before the server
	// closes it: more than all readers of a node together may have in flight. For connections
	// of the port, PortPendingMax is the bound.
	PendingMax = 512 << 20
	// ControlLineMax is the most bytes of one line of the protocol, and SubjectsMax
	// how many subscriptions one connection may have.
	ControlLineMax = 4 << 10
	SubjectsMax    = 64 << 10
	// AuthTimeout is how long a connection may take to present its credential.
	AuthTimeout = 2 * time.Second

	readyTimeout = 30 * time.Second
	// inProcessWait is how often a connection inside the process checks for the server while
	// it restarts.
	inProcessWait = 50 * time.Millisecond
)

// Config is the configuration of an embedded server.
type Config = localserver.Config

// Server is a NATS server in this process, together with the ownership of its directory.
type Server struct {
	cfg          Config
	server       atomic.Pointer[server.Server] // replaced after its disk failed
	lock         *statedir.Lock
	logStore     string
	secrets      map[bus.Role]string
	storeMax     int64
	lowDiskBytes int64 // free bytes below which the disk is low
	disk         *diskWatch
	watching     bool           // watchDisk runs
	port         *proxyListener // observers; nil without a port
	socket       *proxyListener // commands of the same user; nil without a socket
	watch        watchContext
	http         string // the address of an HTTP server of the process

	closing sync.Once
	closed  error
}

// StartServer is Start as a localserver.StartFunc.
func StartServer(cfg Config) (localserver.Server, error) {
	e, err := Start(cfg)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Start acquires the state directory (ErrOwned if another process owns it) and starts a
// server in it. The caller must Close it.
func Start(cfg Config) (*Server, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.StateDir == "" {
		return nil, fmt.Errorf("%w: no state directory given", localserver.ErrStart)
	}
	if err := statedir.CheckForm(cfg.StateDir); err != nil {
		return nil, fmt.Errorf("%w: %w", localserver.ErrStart, err)
	}
	if err := statedir.ClaimDir(cfg.StateDir, cfg.Logger); err != nil {
		return nil, fmt.Errorf("%w: %w", localserver.ErrStart, err)
	}
	// The lock is taken before any other access to the directory: two servers in one directory
	// lose acknowledged entries.
	lock, err := statedir.TakeLock(filepath.Join(cfg.StateDir, statedir.LockName))
	if err != nil {
		return nil, err
	}
	e := &Server{cfg: cfg, lock: lock, secrets: map[bus.Role]string{}, disk: newDiskWatch()}
	for _, role := range roles {
		e.secrets[role] = rand.Text()
	}
	e.logStore, err = statedir.ClaimLogStore(cfg.StateDir, cfg.LogStore)
	if err == nil {
		err = statedir.WriteForm(cfg.StateDir)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", localserver.ErrStart, err)
	} else {
		err = e.start()
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Server) start() error {
	var err error
	e.storeMax, err = storeMax(e.cfg.StateDir, e.cfg.StoreMax)
	if err == nil {
		e.lowDiskBytes, err = lowDiskThreshold(e.cfg.StateDir)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", localserver.ErrStart, err)
	}
	if e.storeMax < localserver.StoreMin {
		return fmt.Errorf("%w: there is room for %d MiB in %s, %d MiB are needed: free some disk space or choose another directory",
			localserver.ErrStart, e.storeMax>>20, e.cfg.StateDir, localserver.StoreMin>>20)
	}
	if err := e.openListeners(); err != nil {
		return fmt.Errorf("%w: %w", localserver.ErrStart, err)
	}
	if err := e.startNATS(); err != nil {
		return err
	}
	e.watching = true
	go e.watchDisk()
	if e.cfg.DontListen {
		return nil
	}
	for _, f := range []*proxyListener{e.port, e.socket} {
		if f != nil {
			f.acceptConns(e.InProcessConn)
		}
	}
	if e.port != nil {
		e.watch = e.writeContext()
	}
	return e.writeNodeFile()
}

// openListeners opens the socket and the port. Connections wait until the server runs.
func (e *Server) openListeners() error {
	if e.cfg.DontListen {
		return nil
	}
	l, err := statedir.ListenSocket(e.cfg.StateDir)
	if err != nil {
		return err
	}
	portMax, socketMax := e.connectionLimits()
	e.socket = newProxyListener(l, socketMax, 0, nil)
	e.socket.names = e.cfg.Names
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
		return fmt.Errorf("embedded: cannot listen: %w", err)
	}
	e.port = newProxyListener(tcp, portMax, PortPendingMax, e.newFanOut())
	e.port.names = e.cfg.Names
	return nil
}

// startNATS starts the server. The server has no listener of its own, so after a restart its
// replacement is reachable at the same addresses.
func (e *Server) startNATS() error {
	log := &serverLog{Logger: e.cfg.Logger, failed: e.disk.reportFailure}
	options, err := e.serverOptions()
	if err != nil {
		return fmt.Errorf("%w: %w", localserver.ErrStart, err)
	}
	s, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("%w: %w", localserver.ErrStart, err)
	}
	s.SetLogger(log, false, false)
	s.Start()
	switch {
	case log.fatalError() != "":
		err = errors.New(log.fatalError())
	case !s.ReadyForConnections(readyTimeout):
		err = errors.New("not ready in time")
	case !s.JetStreamEnabled():
		err = errors.New("JetStream is off")
	default:
		err = e.configureAccounts(s)
	}
	if err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return fmt.Errorf("%w: %w", localserver.ErrStart, err)
	}
	e.server.Store(s)
	return nil
}

const loopback = "127.0.0.1"

func (e *Server) serverOptions() (*server.Options, error) {
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
		Users:                  e.roleUsers(watchers),
	}
	if e.cfg.OpenWatch || e.cfg.OpenControl {
		o.NoAuthUser = string(bus.RoleAnyone)
	}
	return o, nil
}

// URL is the address where the server listens, "" without a port.
func (e *Server) URL() string {
	if e.port == nil {
		return ""
	}
	return "nats://" + e.port.listener.Addr().String()
}

// WatchCommand is the nats command line that connects to this server as an observer, without a
// subcommand: for example nats --context troupe. It is "" without a port.
func (e *Server) WatchCommand() string { return e.watch.command }

// ConnectOptions are the options by which another process of this user connects in a role: by the
// socket.
func (e *Server) ConnectOptions(role bus.Role) bus.Options {
	user, password := e.Credential(role)
	return bus.Options{Owner: e.cfg.StateDir, User: user, Password: password}
}

// LogStore is the store that holds the logs of the directory. The server itself stores them in
// statedir.LogsInJetStream only.
func (e *Server) LogStore() string { return e.logStore }

// StateDir is the directory that is owned.
func (e *Server) StateDir() string { return e.cfg.StateDir }

// Credential returns the user and password of a role, valid as long as this server runs.
func (e *Server) Credential(role bus.Role) (user, password string) {
	return string(role), e.secrets[role]
}

// currentServer returns the current server.
func (e *Server) currentServer() *server.Server { return e.server.Load() }

// HasInterest reports whether any subscription or stream of the server would receive a message
// on the subject now, also one of an observer's account.
func (e *Server) HasInterest(subject string) bool {
	return e.currentServer().GlobalAccount().SubscriptionInterest(subject)
}

// InProcessConn connects to the current server.
func (e *Server) InProcessConn() (net.Conn, error) { return e.currentServer().InProcessConn() }

// Connect opens a connection inside the process in a role. Only RoleNode may access logs and
// leases; a connection that answers requests from outside must use RoleService.
func (e *Server) Connect(role bus.Role, options ...nats.Option) (*nats.Conn, error) {
	user, password := e.Credential(role)
	all := append([]nats.Option{
		nats.InProcessServer(e),
		nats.UserInfo(user, password),
		bus.PrivateInbox(bus.InboxPrefix(role)),
		nats.Timeout(readyTimeout), // the library's two seconds are too short on a machine that is busy
		nats.MaxReconnects(-1), nats.ReconnectWait(inProcessWait), nats.ReconnectJitter(0, 0),
		nats.Name(e.cfg.Names.Prefix() + " " + user),
	}, options...)
	nc, err := nats.Connect("", all...)
	if err != nil {
		return nil, fmt.Errorf("embedded: connect as %s: %w", role, err)
	}
	return nc, nil
}

// Close stops the server and releases the directory. Connections should be closed before.
func (e *Server) Close() error {
	e.closing.Do(func() {
		var errs []error
		if !e.cfg.DontListen {
			errs = append(errs, statedir.RemoveNodeFile(e.cfg.StateDir), e.watch.remove())
		}
		for _, f := range []*proxyListener{e.port, e.socket} {
			if f != nil {
				errs = append(errs, f.closeListener())
			}
		}
		if e.watching {
			e.disk.close()
		}
		if s := e.currentServer(); s != nil {
			shutDown(s)
		}
		for _, f := range []*proxyListener{e.port, e.socket} {
			if f != nil {
				f.closeRelays()
			}
		}
		if e.port != nil {
			e.port.fanOut.close()
		}
		e.closed = errors.Join(append(errs, e.lock.Release())...)
	})
	return e.closed
}
