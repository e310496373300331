// Package httpapi serves the control verbs and the events of a node over HTTP: the same requests
// and the same JSON as on NATS and in the CLI (docs/http.md). It knows a node by its client only.
package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/troupe-run/troupe/client"
)

// ReadyLine begins the line with which a node says at which address it serves HTTP.
const ReadyLine = "http at "

// DefaultAddress is where a node with a server of its own listens, if the port is free.
const DefaultAddress = "127.0.0.1:8420"

// Config of a Server.
type Config struct {
	// Client reaches the node.
	Client *client.Client
	// Token is the credential that each request must present. Required.
	Token string
	// Hosts are accepted names of the server in addition to its addresses and localhost: those of a proxy, or of a
	// service.
	Hosts []string
	// OpenProbes lets anyone ask /healthz and /readyz.
	OpenProbes bool
	// Agents lists the agents that a run without a directory may begin with. Default: none.
	Agents func(context.Context) []Agent
	// Alive returns why the node can do nothing more until it is started again; nil: it can.
	Alive func() error
	// Ready returns why the node cannot take work now; nil: it can.
	Ready func() error
	// Metrics serves /metrics. Default: there are none.
	Metrics http.Handler
	// MCP serves /mcp. Default: there is none.
	MCP http.Handler
	// A2A serves the cards and the tasks of agents below /a2a/. Default: there are none.
	A2A http.Handler
	// Owners have tokens of their own, with which they see and change only their own runs. Token is that of operators.
	Owners []Owner
	// Logger receives the errors of the server. Default: discard.
	Logger *slog.Logger
	limits limits
	owner  string // see access
}

// Owner is a name with a token. Client, MCP and A2A are those of Config, in the name of the owner.
type Owner struct {
	Name, Token string
	Client      *client.Client
	MCP, A2A    http.Handler
}

// Server is an HTTP server of one node.
type Server struct {
	server   *http.Server
	listener net.Listener
	closing  context.CancelFunc
	apis     []*tokenAPI // that of the operators, and one for each owner, behind the same listener
}

// ErrListen says that the address cannot be listened on.
var ErrListen = errors.New("httpapi: cannot listen")

// ErrToken says that there is no token that is long enough to be a secret.
var ErrToken = errors.New("httpapi: the token")

// TokenBytesMin is the least length of a token that a person may choose.
const TokenBytesMin = 16

// CheckToken checks that a token is long enough, and can be sent in a header.
func CheckToken(token string) error {
	if len(token) < TokenBytesMin {
		return fmt.Errorf("%w has %d characters, and at least %d make a secret", ErrToken, len(token), TokenBytesMin)
	}
	for _, r := range token {
		if r <= ' ' || r >= 0x7f {
			return fmt.Errorf("%w has a character that cannot be sent in a header: use letters and digits", ErrToken)
		}
	}
	return nil
}

// Listen opens the address of a server. With an address of "" it is DefaultAddress, or a free port of
// the same host if that is taken.
func Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", cmp.Or(address, DefaultAddress))
	if err != nil && address == "" {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListen, err)
	}
	return l, nil
}

// Serve serves requests on a listener, which the server closes, until Close.
func Serve(l net.Listener, cfg Config) (*Server, error) {
	if err := checkTokens(cfg); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Agents == nil {
		cfg.Agents = func(context.Context) []Agent { return nil }
	}
	if cfg.Alive == nil {
		cfg.Alive = func() error { return nil }
	}
	if cfg.Ready == nil {
		cfg.Ready = func() error { return nil }
	}
	if cfg.limits == (limits{}) {
		cfg.limits = defaultLimits
	}
	base, closing := context.WithCancel(context.Background())
	s := &Server{listener: l, closing: closing, apis: newTokenAPIs(base, cfg)}
	s.server = &http.Server{
		Handler:           limitRequest(cfg.limits, newGuard(s.apis)),
		ReadHeaderTimeout: cfg.limits.header, IdleTimeout: idleTimeout, // ReadTimeout would end streams: see limitRequest
		MaxHeaderBytes: headerBytesMax,
		BaseContext:    func(net.Listener) context.Context { return base },
		ConnContext:    withConnection,
		ErrorLog:       slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug), // anyone can cause these lines
	}
	go func() {
		err := s.server.Serve(newLimitedListener(l, cfg.limits))
		if !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("the HTTP server has ended", "address", l.Addr().String(), "error", err)
		}
	}()
	return s, nil
}

// PlainWarning warns that a server is reached from other machines without encryption; "" if it is not.
func PlainWarning(url string) string {
	at, err := netip.ParseAddrPort(strings.TrimPrefix(url, "http://"))
	if err == nil && at.Addr().IsLoopback() {
		return ""
	}
	return "the HTTP server is open to other machines, and sends tokens and texts in the clear: put a proxy with TLS before it"
}

// TakenWarning warns that another program has DefaultAddress, so that users do not send it the token; "" if the
// server has the requested address.
func TakenWarning(address, url string) string {
	if address != "" || url == "http://"+DefaultAddress {
		return ""
	}
	return "another program listens on " + DefaultAddress + ": do not send the token there; --http HOST:PORT chooses an address of your own"
}

// URL is the address of the server.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close ends the streams, and stops the server once the requests in progress are answered, or soon
// after.
func (s *Server) Close() error {
	s.closing()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.server.Close()
	}
	for _, a := range s.apis {
		a.events.close()
	}
	if err != nil {
		return fmt.Errorf("httpapi: close: %w", err)
	}
	return nil
}
