// Package httpapi serves the control verbs and the events of a node over HTTP: the same requests
// and the same JSON as on NATS and in the CLI (docs/http.md). It knows a node by its client only.
package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/a2aserver"
	"github.com/troupe-run/troupe/internal/mcpserver"
)

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
}

// Owner is a name with a token. Client, MCP and A2A are those of Config, in the name of the owner.
type Owner struct {
	Name, Token string
	Client      *client.Client
	MCP, A2A    http.Handler
}

// Server is an HTTP server of one node.
type Server struct {
	cfg         Config
	owner       string // whose part of the server it is; "": that of the operators
	access      access
	streams     slotShare // a slot for each stream of events
	connections slotShare // a slot for each connection; without owners there are none
	feeds       feeds
	paused      pausedReaders
	server      *http.Server
	listener    net.Listener
	closing     context.CancelFunc
	owners      []*Server // one for each owner, behind the same listener
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
	if cfg.Ready == nil {
		cfg.Ready = func() error { return nil }
	}
	if cfg.limits == (limits{}) {
		cfg.limits = defaultLimits
	}
	base, closing := context.WithCancel(context.Background())
	s := &Server{cfg: cfg, access: newAccess(cfg), listener: l, closing: closing}
	s.feeds = feeds{client: cfg.Client, ctx: base, runs: map[string]*runFeed{}}
	s.paused = pausedReaders{client: cfg.Client, ctx: base}
	for _, o := range cfg.Owners {
		s.owners = append(s.owners, newOwnerServer(base, s, o))
	}
	s.divideSlots()
	s.server = &http.Server{
		Handler:           s.handler(),
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
	for _, one := range append([]*Server{s}, s.owners...) {
		one.feeds.ended.Wait()
		one.paused.closeBefore(time.Now())
	}
	if err != nil {
		return fmt.Errorf("httpapi: close: %w", err)
	}
	return nil
}

// handler is the whole surface: each path below checks access first.
func (s *Server) handler() http.Handler {
	all := newMux(s)
	doors := []door{{s.access, all, countConnection(s, all)}}
	for _, o := range s.owners {
		mux := newMux(o)
		doors = append(doors, door{o.access, mux, countConnection(o, mux)})
	}
	return limitRequest(s.cfg.limits, guard(doors))
}

// newMux serves the paths for those who have the token of a server.
func newMux(s *Server) http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.Handle(r.method+" "+r.path, r.handler)
	}
	mux.HandleFunc("GET /{$}", servePage)
	mux.HandleFunc("GET "+pathAssets+"{name}", serveAsset)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { refuseUnknownPath(mux, w, r) })
	return refuseNeedlessBody(mux)
}

// route is one path of the server.
type route struct {
	method, path string
	handler      http.HandlerFunc
}

func (s *Server) routes() []route {
	run := "/api/v1/runs/{id}"
	list := []route{
		{"GET", pathHealth, answerHealth},
		{"GET", pathReady, s.answerReady},
		{"GET", "/api/v1/runs", s.listRuns},
		{"POST", "/api/v1/runs", s.startRun},
		{"GET", run, s.withRun(s.getRun)},
		{"GET", run + "/tree", s.withRun(s.getTree)},
		{"GET", run + "/result", s.withRun(s.getResult)},
		{"GET", run + "/budget", s.withRun(s.getBudget)},
		{"GET", run + "/policy", s.withRun(s.getPolicy)},
		{"GET", run + "/timeline", s.withRun(s.getTimeline)},
		{"GET", run + "/report", s.withRun(s.getReport)},
		{"GET", run + "/audit", s.withRun(s.getAudit)},
		{"GET", run + "/transcript", s.withRun(s.getTranscript)},
		{"GET", run + "/questions", s.withRun(s.getQuestions)},
		{"GET", run + "/events", s.withRun(s.getEvents)},
		{"GET", run + "/logs", s.withRun(getLogs(s.cfg.Client))},
		{"GET", run + "/comparison", s.withRun(getComparison(s.cfg.Client))},
		{"POST", run + "/cancel", s.withRun(s.cancelRun)},
		{"POST", run + "/steer", s.withRun(s.steerRun)},
		{"POST", run + "/answer", s.withRun(s.answerQuery)},
		{"POST", run + "/budget", s.withRun(s.changeBudget)},
		{"POST", run + "/policy", s.withRun(s.setPolicy)},
		{"GET", run + "/context", s.withRun(getContext(s.cfg.Client))},
		{"POST", run + "/context", s.withRun(setContext(s.cfg.Client))},
		{"GET", run + "/permissions", s.withRun(getPermissions(s.cfg.Client))},
		{"POST", run + "/permissions", s.withRun(narrowPermissions(s.cfg.Client))},
		{"GET", run + "/backlog", s.withRun(getBacklog(s.cfg.Client))},
		{"POST", run + "/backlog", s.withRun(changeBacklog(s.cfg.Client))},
		{"GET", "/api/v1/conversations", listConversations(s.cfg.Client)},
		{"GET", pathConversation, getConversation(s.cfg.Client)},
		{"DELETE", pathConversation, deleteConversation(s.cfg.Client)},
		{"POST", pathConversation + "/lane", changeLane(s.cfg.Client)},
		{"GET", "/api/v1/schedules", listSchedules(client.Schedules{Client: s.cfg.Client})},
		{"GET", "/api/v1/schedules/{id}", getSchedule(client.Schedules{Client: s.cfg.Client})},
		{"DELETE", "/api/v1/schedules/{id}", deleteSchedule(client.Schedules{Client: s.cfg.Client})},
		{"GET", "/api/v1/questions", s.listQuestions},
		{"GET", "/api/v1/nodes", s.listNodes},
		{"GET", "/api/v1/cluster", getCluster(s.cfg.Client)},
		{"POST", "/api/v1/nodes/{node}/drain", drainNode(s.cfg.Client)},
		{"GET", "/api/v1/agents", s.listAgents},
		{"POST", pathTickets, s.createTicket},
		{"POST", pathSessions, s.createSession},
		{"GET", "/api/v1/openapi.json", serveDocument},
		{"POST", "/v1/chat/completions", s.completeChat},
		{"GET", "/v1/models", s.listModels},
		{"GET", "/v1/models/{model}", s.getModel},
	}
	if s.cfg.Metrics != nil {
		list = append(list, route{"GET", "/metrics", s.cfg.Metrics.ServeHTTP})
	}
	if s.cfg.MCP != nil {
		list = append(list, route{"POST", "/mcp", s.passOn(requireMessages(s.cfg.MCP))})
	}
	if s.cfg.A2A != nil {
		list = append(list, route{"GET", a2aserver.CardPath, s.cfg.A2A.ServeHTTP}, route{"GET", a2aserver.NodeCardPath, s.cfg.A2A.ServeHTTP}, route{"POST", a2aserver.Path, s.passOn(s.cfg.A2A)})
	}
	return list
}

// passOn passes requests of another protocol on. A call may take as long as a run.
func (s *Server) passOn(to http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		release, ok := s.streams.take()
		if !ok {
			refuseError(w, &client.Error{Code: client.CodeLimit, Text: "the server has as many calls and streams as it serves at once", Retry: 5 * time.Second})
			return
		}
		defer release()
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			bad := asBodyError(err)
			refuseEarly(w, r, bad.code, bad.text, bad.hint)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // see limitRequest
		r.Body = io.NopCloser(bytes.NewReader(raw))
		to.ServeHTTP(w, r)
	}
}

// requireMessages refuses what is not a message of MCP or a batch of few as the API does: the library of the protocol
// answers it with a bare text, and serves a batch of any size.
func requireMessages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body) // passOn has read it
		problem := "it is not JSON"
		if err == nil && json.Valid(raw) {
			problem = mcpserver.MessageProblem(raw)
		}
		if problem != "" {
			refuse(w, http.StatusBadRequest, "the body is not a valid request: "+problem, "send a message of the protocol MCP: docs/mcp.md")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(raw))
		next.ServeHTTP(w, r)
	})
}
