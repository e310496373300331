package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/mcpserver"
)

// passOn passes requests of another protocol on. A call may take as long as a run.
func passOn(streams slotShare, to http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		release, ok := streams.take()
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
