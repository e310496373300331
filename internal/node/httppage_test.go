package node

import (
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/httpapi"
)

// presenting presents another credential, or none.
func presenting(token string) func(*http.Request) {
	return func(r *http.Request) {
		if r.Header.Del("Authorization"); token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
}

// The page loads without a credential and says nothing about the node; its policy has no exception.
func TestPageHasAStrictPolicy(t *testing.T) {
	t.Parallel()
	_, w := startWeb(t)
	for path, kind := range map[string]string{"/": "text/html", "/ui/page.js": "text/javascript", "/ui/page.css": "text/css"} {
		reply, err := w.http.Do(w.request("GET", path, "", presenting("")))
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != http.StatusOK || !strings.HasPrefix(reply.Header.Get("Content-Type"), kind) || reply.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, reply.StatusCode, reply.Header)
		}
		policy := reply.Header.Get("Content-Security-Policy")
		if path == "/" && (!strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';") ||
			strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || !strings.Contains(policy, "frame-ancestors 'none'")) {
			t.Errorf("policy %q", policy)
		}
	}
	foreign := []func(*http.Request){func(r *http.Request) { r.Host = "evil.example" }, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }}
	for i, status := range []int{http.StatusMisdirectedRequest, http.StatusForbidden} {
		for _, path := range []string{"/", "/ui/page.js"} {
			w.expect(w.request("GET", path, "", presenting(""), foreign[i]), status, nil)
		}
		w.expect(w.request("POST", "/api/v1/sessions", `{}`, foreign[i]), status, nil)
	}
	w.expect(w.request("GET", "/ui/go.mod", "", presenting("")), http.StatusNotFound, nil)
}

// The page of a browser gets a session for a ticket, once; nothing else opens one.
func TestTicketOpensTheAPIOnce(t *testing.T) {
	t.Parallel()
	_, w := startWeb(t)
	_, other := startWeb(t)
	var ticket httpapi.Ticket
	w.post("/api/v1/tickets", "", http.StatusCreated, &ticket)
	body := `{"ticket":"` + ticket.Ticket + `"}`
	other.expect(other.request("POST", "/api/v1/sessions", body, presenting("")), http.StatusUnauthorized, nil)
	var session httpapi.PageSession
	w.expect(w.request("POST", "/api/v1/sessions", body, presenting("")), http.StatusCreated, &session)
	w.expect(w.request("POST", "/api/v1/sessions", body, presenting("")), http.StatusUnauthorized, nil) // used
	w.expect(w.request("POST", "/api/v1/sessions", `{"ticket":""}`, presenting("")), http.StatusUnauthorized, nil)
	w.expect(w.request("POST", "/api/v1/sessions", `{}`, presenting("a wrong token of a node")), http.StatusUnauthorized, nil)
	w.expect(w.request("POST", "/api/v1/sessions", `{}`), http.StatusCreated, nil) // for the token

	w.expect(w.request("GET", "/api/v1/runs", "", presenting(session.Session)), http.StatusOK, nil)
	w.expect(w.request("GET", "/api/v1/agents", "", presenting(session.Session)), http.StatusOK, nil)
	other.expect(other.request("GET", "/api/v1/runs", "", presenting(session.Session)), http.StatusUnauthorized, nil)
	// A session does not renew itself, and opens nothing that the page does not use.
	w.expect(w.request("POST", "/api/v1/tickets", "", presenting(session.Session)), http.StatusUnauthorized, nil)
	w.expect(w.request("POST", "/api/v1/sessions", `{}`, presenting(session.Session)), http.StatusUnauthorized, nil)
	w.expect(w.request("POST", "/mcp", `{}`, presenting(session.Session)), http.StatusUnauthorized, nil)
	// It is no cookie: a page of another origin cannot use it.
	w.expect(w.request("GET", "/api/v1/runs", "", presenting(""), func(r *http.Request) { r.Header.Set("Cookie", "session="+session.Session) }), http.StatusUnauthorized, nil)
	w.expect(w.request("GET", "/api/v1/runs", "", presenting(session.Session), func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }), http.StatusForbidden, nil)
}
