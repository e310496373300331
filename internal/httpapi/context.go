package httpapi

import (
	"net/http"

	"github.com/troupe-run/troupe/client"
)

// getContext is GET /api/v1/runs/{id}/context, of the agent that has the conversation or of agent=ID.
func getContext(c *client.Client) runHandler {
	return func(w http.ResponseWriter, r *http.Request, run string) {
		q := queryReader{values: r.URL.Query()}
		who := q.text("agent")
		if !q.accept(w, "agent") {
			return
		}
		doc, err := client.Context(r.Context(), c, run, who)
		answer(w, doc, err)
	}
}

// setContext is POST /api/v1/runs/{id}/context.
func setContext(c *client.Client) runHandler {
	return func(w http.ResponseWriter, r *http.Request, run string) {
		var doc client.ContextRequest
		if !readCommand(w, r, run, &doc, &doc.RunID, &doc.Request) {
			return
		}
		if heldByAgent(r) {
			refuseError(w, errAgentAnswers)
			return
		}
		if !doc.Changes() {
			refuse(w, http.StatusBadRequest, "the body changes nothing", "name layers, add_tools or remove_tools")
			return
		}
		answer(w, Recorded{run, doc.Request}, client.SetContext(r.Context(), c, doc))
	}
}
