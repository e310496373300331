package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

const (
	pathHealth = "/healthz"
	pathReady  = "/readyz"
)

// access decides which requests are served. A request needs the token or a session. Browsers send neither by
// themselves, so no page of another origin can ask in the name of a user; the checks of Host and Origin also stop a
// page that has learned the token of another server.
type access struct {
	token      [sha256.Size]byte // its hash, so that a comparison takes the same time for any text
	sessions   *sessionKeeper
	owner      string // whose token it is; "": that of the operators
	hosts      []string
	openProbes bool
}

func newAccess(cfg Config) access {
	a := access{token: sha256.Sum256([]byte(cfg.Token)), sessions: newSessionKeeper(cfg.Token), owner: cfg.owner, openProbes: cfg.OpenProbes}
	for _, h := range cfg.Hosts {
		a.hosts = append(a.hosts, strings.ToLower(h))
	}
	return a
}

// door is what a token opens. counted is the handler for requests with the token, whose connections count for its share.
type door struct {
	access
	handler, counted http.Handler
}

// guard refuses a request from a foreign place or without a token. Of the doors, the first is that of operators.
func guard(doors []door) http.Handler {
	a, next := doors[0].access, doors[0].handler
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		switch {
		case !a.isOwnHost(r):
			refuseEarly(w, r, http.StatusMisdirectedRequest, "this server is not asked as "+quoteShort(r.Host),
				"ask it by its address, or start the node with --http-host NAME")
		case !isOwnOrigin(r):
			refuseEarly(w, r, http.StatusForbidden, "pages of "+quoteShort(r.Header.Get("Origin"))+" may not ask this server", "")
		case a.hasToken(r), a.hasSession(r):
			doors[0].counted.ServeHTTP(w, r)
		default:
			for _, d := range doors[1:] {
				if d.hasToken(r) || d.hasSession(r) {
					d.counted.ServeHTTP(w, r)
					return
				}
			}
			if a.openProbes && (r.URL.Path == pathHealth || r.URL.Path == pathReady) || isPagePath(r.URL.Path) || r.URL.Path == pathSessions {
				next.ServeHTTP(w, r)
				return
			}
			h.Set("WWW-Authenticate", `Bearer realm="troupe"`)
			refuseEarly(w, r, http.StatusUnauthorized, "the request has no token, or another one",
				"send the header Authorization: Bearer TOKEN; the node said at its start where the token is (docs/http.md)")
		}
	})
}

// hasToken reports whether a request presents the token.
func (a access) hasToken(r *http.Request) bool {
	given := sha256.Sum256([]byte(credential(r)))
	return subtle.ConstantTimeCompare(given[:], a.token[:]) == 1
}

// hasSession reports whether a request presents a session, and is one that a page makes. A session makes no
// tickets: it would never end.
func (a access) hasSession(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, pathAPI) && r.URL.Path != pathTickets && a.sessions.accepts(credential(r))
}

// credential is the bearer token of a request; "" without one.
func credential(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// isOwnHost reports whether a request names this server. A page whose name was bound to this address
// after it was loaded (DNS rebinding) names its own server.
func (a access) isOwnHost(r *http.Request) bool {
	name := strings.ToLower(hostName(r.Host))
	if slices.Contains(a.hosts, name) {
		return true
	}
	local, ok := localAddress(r)
	if !ok {
		return false
	}
	if name == "localhost" {
		return local.IsLoopback()
	}
	named, err := netip.ParseAddr(name)
	return err == nil && (named.Unmap() == local || named.IsLoopback() && local.IsLoopback())
}

// hostName is a Host without its port and brackets.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// localAddress is the address of this end of the connection.
func localAddress(r *http.Request) (netip.Addr, bool) {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	return at.AddrPort().Addr().Unmap(), true
}

// isOwnOrigin reports whether a request comes from no page, or from a page of this server.
func isOwnOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	from, err := url.Parse(origins[0])
	return len(origins) == 1 && err == nil && (from.Scheme == "http" || from.Scheme == "https") && strings.EqualFold(from.Host, r.Host)
}
