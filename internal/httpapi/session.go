package httpapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Limits of the sessions of pages.
const (
	// ticketLife is how long a ticket can be exchanged for a session.
	ticketLife = 5 * time.Minute
	// ticketsMax is how many tickets may wait; a newer one replaces the oldest.
	ticketsMax = 64
	// sessionLife is how long a session opens the API.
	sessionLife = 12 * time.Hour
)

const (
	pathTickets  = "/api/v1/tickets"
	pathSessions = "/api/v1/sessions"
	pathAPI      = "/api/v1/"
	// sessionPrefix is how the credential of a session begins; the token of a node may begin so, too.
	sessionPrefix = "troupe-session-"
	expiryBytes   = 8
	nonceBytes    = 16
)

// Ticket can be exchanged once for a session.
type Ticket struct {
	Ticket  string `json:"ticket"`
	Expires string `json:"expires"` // RFC 3339
}

// SessionRequest exchanges a ticket for a session.
type SessionRequest struct {
	Ticket string `json:"ticket,omitempty"`
}

// PageSession is the credential of a page.
type PageSession struct {
	Session string `json:"session"`
	Expires string `json:"expires"`         // RFC 3339
	Owner   string `json:"owner,omitempty"` // whose runs it opens; "": those of all, as the token of the node does
}

// sessionKeeper issues tickets and sessions. A session is signed and stored nowhere, so it outlives a restart
// of the node; it opens only nodes that have the same token.
type sessionKeeper struct {
	key []byte
	now func() time.Time

	mu      sync.Mutex
	tickets []waitingTicket // the oldest first
}

type waitingTicket struct {
	hash    [sha256.Size]byte
	expires time.Time
}

func newSessionKeeper(token string) *sessionKeeper {
	key := hmac.New(sha256.New, []byte(token))
	key.Write([]byte("troupe: the key of page sessions"))
	return &sessionKeeper{key: key.Sum(nil), now: time.Now}
}

// newTicket issues a ticket.
func (k *sessionKeeper) newTicket() Ticket {
	text, expires := rand.Text(), k.now().Add(ticketLife)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tickets = append(k.tickets, waitingTicket{sha256.Sum256([]byte(text)), expires})
	if len(k.tickets) > ticketsMax {
		k.tickets = k.tickets[1:]
	}
	return Ticket{text, formatExpiry(expires)}
}

// takeTicket reports whether a ticket is valid, and takes it away.
func (k *sessionKeeper) takeTicket(text string) bool {
	given, now := sha256.Sum256([]byte(text)), k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, t := range k.tickets {
		if t.hash == given { // of a random text: the time of a comparison of hashes says nothing about it
			k.tickets = append(k.tickets[:i:i], k.tickets[i+1:]...)
			return now.Before(t.expires)
		}
	}
	return false
}

// newSession issues a session.
func (k *sessionKeeper) newSession() PageSession {
	expires := k.now().Add(sessionLife)
	claims := binary.BigEndian.AppendUint64(nil, uint64(expires.Unix()))
	claims = append(claims, make([]byte, nonceBytes)...)
	_, _ = rand.Read(claims[expiryBytes:]) // it never fails
	return PageSession{Session: sessionPrefix + base64.RawURLEncoding.EncodeToString(append(claims, k.sign(claims)...)), Expires: formatExpiry(expires)}
}

// accepts reports whether a credential is a session that this keeper has issued and that has not expired.
func (k *sessionKeeper) accepts(credential string) bool {
	text, ok := strings.CutPrefix(credential, sessionPrefix)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	const claimed = expiryBytes + nonceBytes
	if !ok || err != nil || len(raw) != claimed+sha256.Size || !hmac.Equal(raw[claimed:], k.sign(raw[:claimed])) {
		return false
	}
	return uint64(k.now().Unix()) < binary.BigEndian.Uint64(raw)
}

func (k *sessionKeeper) sign(claims []byte) []byte {
	m := hmac.New(sha256.New, k.key)
	m.Write(claims)
	return m.Sum(nil)
}

func formatExpiry(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// sessionPaths lets the page of a node get its credential. access is that of the token; others are those of the owners.
type sessionPaths struct {
	access access
	others []access
}

// createTicket is POST /api/v1/tickets.
func (p sessionPaths) createTicket(w http.ResponseWriter, r *http.Request) {
	if err := readBody(r, &struct{}{}, true); err != nil {
		refuseBody(w, err)
		return
	}
	writeJSON(w, http.StatusCreated, p.access.sessions.newTicket())
}

// createSession is POST /api/v1/sessions: for a ticket, or for the token of the node.
func (p sessionPaths) createSession(w http.ResponseWriter, r *http.Request) {
	var request SessionRequest
	if err := readBody(r, &request, true); err != nil {
		refuseBody(w, err)
		return
	}
	opened := p.access
	taken := opened.hasToken(r) || opened.sessions.takeTicket(request.Ticket)
	for _, o := range p.others { // a page has no token that would say whose ticket it is
		if !taken && o.sessions.takeTicket(request.Ticket) {
			opened, taken = o, true
		}
	}
	if !taken {
		refuse(w, http.StatusUnauthorized, "the ticket is unknown, was used, or is too old", "troupe ui prints a new address")
		return
	}
	session := opened.sessions.newSession()
	session.Owner = opened.owner
	writeJSON(w, http.StatusCreated, session)
}
