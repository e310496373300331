package httpapi

import (
	"net/http"

	"github.com/troupe-run/troupe/client"
)

// getPermissions is GET /api/v1/runs/{id}/permissions.
func getPermissions(c *client.Client) runHandler {
	return func(w http.ResponseWriter, r *http.Request, run string) {
		doc, err := client.Permissions(r.Context(), c, run)
		answer(w, doc, err)
	}
}

// narrowPermissions is POST /api/v1/runs/{id}/permissions.
func narrowPermissions(c *client.Client) runHandler {
	return func(w http.ResponseWriter, r *http.Request, run string) {
		var doc client.PermissionsRequest
		if !readCommand(w, r, run, &doc, &doc.RunID, &doc.Request) {
			return
		}
		if heldByAgent(r) {
			refuseError(w, errAgentAnswers)
			return
		}
		if !doc.Changes() {
			refuse(w, http.StatusBadRequest, "the body changes nothing", "name mode, ask or deny: rights of a live agent only become narrower")
			return
		}
		answer(w, Recorded{run, doc.Request}, client.NarrowPermissions(r.Context(), c, doc))
	}
}
