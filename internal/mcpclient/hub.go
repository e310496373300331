package mcpclient

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Config of a Hub.
type Config struct {
	// Getenv reads the variables that definitions name. Default os.Getenv.
	Getenv func(string) string
	// Idle is how long a server without a call is kept. Default IdleMax.
	Idle time.Duration
	// Version is what we call ourselves. Default "dev".
	Version string
	Logger  *slog.Logger // default: discard
}

// Hub keeps the servers of a node: each is started when it is first needed, and
// all are ended by Close. It is safe for concurrent use.
type Hub struct {
	cfg  Config
	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	servers map[string]*serverProcess
	closed  bool
}

// New makes a Hub without servers. The caller must Close it.
func New(cfg Config) *Hub {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Idle, cfg.Version = cmp.Or(cfg.Idle, IdleMax), cmp.Or(cfg.Version, "dev")
	h := &Hub{cfg: cfg, servers: map[string]*serverProcess{}}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// Close ends all servers. Calls that are under way end with an error.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	all := h.servers
	h.servers = nil
	h.mu.Unlock()
	h.end()
	var closing sync.WaitGroup // one that does not read its end takes seconds
	for _, s := range all {
		closing.Go(s.closeServer)
	}
	closing.Wait()
	h.work.Wait()
}

// acquireServer returns the server of a definition in a directory. The caller must call leave.
func (h *Hub) acquireServer(def Server, dir string) (*serverProcess, error) {
	for {
		s, err := h.findServer(def, dir)
		if err != nil || s.beginCall() {
			return s, err
		} // the hub forgot it just now
	}
}

func (h *Hub) findServer(def Server, dir string) (*serverProcess, error) {
	key := fmt.Sprintf("%s\x00%s\x00%s\x00%t\x00%t\x00%v", def.Source, def.Hash(), dir, def.Own, len(def.UserEnv) > 0, def.Files)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	s := h.servers[key]
	if s == nil {
		s = &serverProcess{hub: h, key: key, def: def, dir: dir, gone: make(chan struct{})}
		h.servers[key] = s
	}
	return s, nil
}

// forgetServer removes a server that is closed for good.
func (h *Hub) forgetServer(s *serverProcess) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.servers, s.key)
}

// runBackground runs work in the background; it returns false if the hub is closed.
func (h *Hub) runBackground(work func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.work.Go(work)
	}
	return !h.closed
}

// List starts a server if need be, and returns what it offers now.
func (h *Hub) List(ctx context.Context, def Server, dir string) (Listing, error) {
	s, err := h.acquireServer(def, dir)
	if err != nil {
		return Listing{}, err
	}
	defer s.endCall()
	l, err := s.acquireSession(ctx)
	if err != nil {
		return Listing{}, err
	}
	return l.currentOffers(ctx)
}

// Tool is a tool of a server as it was when the run began. Every call gets the
// definition from find, and fails if the definition is missing or has
// changed.
func (h *Hub) Tool(spec model.ToolSpec, dir string, find func() (Server, error)) tool.Tool {
	t := &remoteTool{hub: h, spec: spec, dir: dir, find: find}
	if def, err := find(); err == nil {
		t.timeout = def.Timeout
	}
	return t
}

// Find returns the definition of a server in a file, if it still has the
// given hash.
func Find(file File, name, hash string) (Server, error) {
	i := slices.IndexFunc(file.Servers, func(s Server) bool { return s.Name == name })
	switch {
	case i < 0:
		return Server{}, fmt.Errorf("%w: the file that the run started with has no server %s on this node; add it there", ErrConfig, name)
	case file.Servers[i].Hash() != hash:
		return Server{}, fmt.Errorf("%w: the server %s in %s differs from the one that the run started with; start a new run", ErrConfig, name, file.Servers[i].Source)
	}
	return file.Servers[i], nil
}
