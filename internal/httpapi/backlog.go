package httpapi

import (
	"net/http"

	"github.com/troupe-run/troupe/client"
)

// getBacklog is GET /api/v1/runs/{id}/backlog, of all tasks or of task=ID in full.
func getBacklog(c *client.Client) runHandler {
	return func(w http.ResponseWriter, r *http.Request, run string) {
		q := queryReader{values: r.URL.Query()}
		task := q.text("task")
		if !q.accept(w, "task") {
			return
		}
		doc, err := client.AskBacklog(r.Context(), c, client.BacklogRequest{RunID: run, Task: task})
		answer(w, doc, err)
	}
}

// changeBacklog is POST /api/v1/runs/{id}/backlog.
func changeBacklog(c *client.Client) runHandler {
	return func(w http.ResponseWriter, r *http.Request, run string) {
		var doc client.BacklogRequest
		if !readCommand(w, r, run, &doc, &doc.RunID, &doc.Request) {
			return
		}
		if !doc.Changes() {
			refuse(w, http.StatusBadRequest, "the body changes nothing", "name the title of a new task, or the task to drop")
			return
		}
		reply, err := client.AskBacklog(r.Context(), c, doc)
		answer(w, reply, err)
	}
}
