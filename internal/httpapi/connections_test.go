package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

const testToken = "0123456789abcdef"

// soon is when the tests give up.
const soon = 20 * time.Second

// startLimited starts a server without a node, whose limits are those of change.
func startLimited(t *testing.T, change func(*limits)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	most := limits{connections: 16, unproven: 4, header: soon, body: soon, reply: soon, drain: soon}
	change(&most)
	protocol := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, struct{}{}) })
	s, err := Serve(l, Config{Token: testToken, MCP: protocol, A2A: protocol, limits: most})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// rawConn is a connection on which a test sends what it likes.
type rawConn struct {
	net.Conn
	t       *testing.T
	replies *bufio.Reader
}

func dialRaw(t *testing.T, address string) rawConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(soon))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // a test may have closed it
	return rawConn{conn, t, bufio.NewReader(conn)}
}

// send sends a request with a header line and a body, of which length bytes are announced.
func (c rawConn) send(method, path, header, body string, length int) {
	c.t.Helper()
	if header != "" {
		header += "\r\n"
	}
	if length > 0 {
		header += fmt.Sprintf("Content-Length: %d\r\n", length)
	}
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", method, path, c.RemoteAddr(), header, body); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads one answer.
func (c rawConn) receive() (r *http.Response, body string) {
	c.t.Helper()
	r, err := http.ReadResponse(c.replies, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r, string(raw)
}

// isClosed reports whether the server closes the connection, and sends nothing more before.
func (c rawConn) isClosed() bool {
	c.t.Helper()
	switch _, err := c.replies.ReadByte(); {
	case err == nil:
		c.t.Error("the server sent more than one answer")
		return false
	default:
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
}

// net/http ends what it sends before it closes a connection on which a client is still sending.
func TestConnectionEndsOneDirection(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limited := newLimitedListener(l, limits{connections: 1, unproven: 1})
	t.Cleanup(func() { _ = limited.Close() })
	client := dialRaw(t, l.Addr().String())
	served, err := limited.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = served.Close() })
	half, ok := served.(interface{ CloseWrite() error })
	if !ok {
		t.Fatal("the connection hides that it can end one direction")
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.replies.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the client reads %v", err)
	}
	if _, err := fmt.Fprint(client, "x"); err != nil {
		t.Fatal(err)
	}
	if n, err := served.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("the server reads %d bytes, %v", n, err)
	}
}

const withToken, withoutToken, withOther = "Authorization: Bearer " + testToken, "", "Authorization: Bearer another-token-of-someone"

// A request that is refused leaves no open connection: the client may be silent, or send its body slowly or never.
func TestAttackRefusedRequestHoldsNoConnection(t *testing.T) {
	t.Parallel()
	address := startLimited(t, func(l *limits) { l.drain = 20 * time.Millisecond })
	patient := startLimited(t, func(*limits) {}) // a busy machine needs longer for a whole body
	whole := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		name, method, path, header, body string
		length, status                   int
	}{
		{"no token, then silence", "GET", "/api/v1/runs", withoutToken, "", 0, 401},
		{"no token, a part of a body", "POST", "/api/v1/runs", withoutToken, "{", 1000, 401},
		{"no token, a part of a large body", "POST", "/api/v1/runs", withoutToken, "{", 300 << 10, 401},
		{"no token, a whole body", "POST", "/api/v1/runs", withoutToken, whole, len(whole), 401},
		{"another token, a part of a body", "POST", "/api/v1/runs", withOther, "{", 1000, 401},
		{"another token, OpenAI", "POST", "/v1/chat/completions", withOther, "{", 1000, 401},
		{"a foreign page", "POST", "/api/v1/runs", "Origin: http://evil.example.org", "{", 1000, 403},
		{"a ticket that is none", "POST", "/api/v1/sessions", withoutToken, "{}", 2, 401},
		{"a file of the page", "GET", "/ui/page.js", withoutToken, "", 0, 0},
		{"the token, a body that is no JSON", "POST", "/api/v1/runs", withToken, "]", 1000, 400},
		{"the token, a body of another type", "POST", "/api/v1/runs", withToken + "\r\nContent-Type: text/plain", "{", 1000, 415},
		{"the token, a body for an unknown path", "POST", "/api/v2/runs", withToken, "{", 1000, 404},
		{"the token, a body of a GET", "GET", "/api/v1/runs", withToken, "{", 1000, 400},
		{"the token, a body that waits for the word to go on", "POST", "/api/v2/runs", withToken + "\r\nExpect: 100-continue", "", 1000, 404},
	} {
		server := address
		if c.length > 0 && len(c.body) == c.length {
			server = patient
		}
		conn := dialRaw(t, server)
		conn.send(c.method, c.path, c.header, c.body, c.length)
		r, body := conn.receive()
		if c.status != 0 && r.StatusCode != c.status || !r.Close {
			t.Errorf("%s: %d, close %t: %s", c.name, r.StatusCode, r.Close, body)
		}
		if !conn.isClosed() {
			t.Errorf("%s: the connection stays open", c.name)
		}
	}
}

// A body that does not arrive in time is refused with 408, whichever path it is for, and the connection is closed.
func TestAttackUnfinishedBodyIsRefusedInTime(t *testing.T) {
	t.Parallel()
	address := startLimited(t, func(l *limits) { l.body, l.drain = 50*time.Millisecond, 20*time.Millisecond })
	for _, path := range []string{"/api/v1/runs", "/v1/chat/completions", "/api/v1/sessions", "/api/v1/tickets", "/mcp", "/a2a/scout"} {
		for _, body := range []string{"", "{", "{}"} {
			for _, header := range []string{withToken, withoutToken} {
				if header == withoutToken && path != "/api/v1/sessions" {
					continue
				}
				conn := dialRaw(t, address)
				conn.send("POST", path, header, body, 1000)
				r, text := conn.receive()
				if r.StatusCode != http.StatusRequestTimeout || !r.Close || !strings.Contains(text, "in time") {
					t.Errorf("%s %q: %d, close %t: %s", path, body, r.StatusCode, r.Close, text)
				}
				if !conn.isClosed() {
					t.Errorf("%s %q: the connection stays open", path, body)
				}
			}
		}
	}
}

// A connection that sends no request, or a part of one, is closed.
func TestAttackUnfinishedHeadersAreRefusedInTime(t *testing.T) {
	t.Parallel()
	address := startLimited(t, func(l *limits) { l.header = 20 * time.Millisecond })
	for _, part := range []string{"", "GET /api/v1/runs HTTP/1.1\r\nHost:"} {
		conn := dialRaw(t, address)
		if _, err := conn.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		if !conn.isClosed() {
			t.Errorf("the connection that sent %q stays open", part)
		}
	}
}

// Connections without a token are few: a newer one takes the place of the oldest, so that a flood of them keeps no client
// with the token out, and closes none of its connections.
func TestAttackFloodOfConnectionsWithoutToken(t *testing.T) {
	t.Parallel()
	const unproven, flood = 4, 100
	address := startLimited(t, func(l *limits) { l.unproven = unproven })
	ask := func(c rawConn) {
		t.Helper()
		c.send("GET", "/api/v1/agents", withToken, "", 0)
		if r, body := c.receive(); r.StatusCode != http.StatusOK || r.Close {
			t.Errorf("%d, close %t: %s", r.StatusCode, r.Close, body)
		}
	}
	first := dialRaw(t, address)
	ask(first)
	silent := make([]rawConn, flood)
	for i := range silent {
		silent[i] = dialRaw(t, address)
		if i%2 == 0 {
			silent[i].send("POST", "/api/v1/sessions", withoutToken, "{", 1000)
		}
	}
	last := dialRaw(t, address)
	ask(last)
	ask(first)
	open := silent[flood-unproven+1:]
	for _, c := range silent[:flood-len(open)] {
		if !c.isClosed() {
			t.Error("a connection of the flood stays open")
		}
	}
	for i, c := range open {
		if (flood-len(open)+i)%2 != 0 {
			ask(c)
		}
	}
}

// A server that has as many connections as it serves closes one without a token for a new one. If all have the token, the
// new one waits.
func TestFullServerPrefersConnectionsWithToken(t *testing.T) {
	t.Parallel()
	address := startLimited(t, func(l *limits) { l.connections, l.unproven = 3, 2 })
	ask := func(c rawConn) {
		t.Helper()
		if r, body := c.receive(); r.StatusCode != http.StatusOK {
			t.Errorf("%d: %s", r.StatusCode, body)
		}
	}
	var proven []rawConn
	for range 2 {
		c := dialRaw(t, address)
		c.send("GET", "/api/v1/agents", withToken, "", 0)
		ask(c)
		proven = append(proven, c)
	}
	silent := dialRaw(t, address)
	third := dialRaw(t, address)
	third.send("GET", "/api/v1/agents", withToken, "", 0)
	ask(third)
	if !silent.isClosed() {
		t.Error("the connection without a token stays open")
	}
	fourth := dialRaw(t, address)
	fourth.send("GET", "/api/v1/agents", withToken, "", 0)
	if err := proven[0].Close(); err != nil {
		t.Fatal(err)
	}
	ask(fourth)
}

// A connection of a client with the token serves further requests, also after an error.
func TestConnectionWithTokenStaysOpen(t *testing.T) {
	t.Parallel()
	address := startLimited(t, func(l *limits) { l.body = soon })
	c := dialRaw(t, address)
	for _, q := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/api/v1/agents", "", 200},
		{"GET", "/api/v2", "", 404},
		{"POST", "/api/v1/runs", `{"promt":1}`, 400},
		{"POST", "/api/v1/tickets", "{}", 201},
		{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 200},
		{"GET", "/", "", 200},
	} {
		c.send(q.method, q.path, withToken, q.body, len(q.body))
		if r, body := c.receive(); r.StatusCode != q.status || r.Close {
			t.Errorf("%s %s: %d, close %t: %s", q.method, q.path, r.StatusCode, r.Close, body)
		}
	}
}
