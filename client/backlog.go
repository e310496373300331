package client

import (
	"context"

	"github.com/troupe-run/troupe/agent/event"
)

// BacklogRequest adds a task to the backlog that the agents of a live run share, or drops one. Without a
// change it asks for the tasks.
type BacklogRequest struct {
	RunID   string `json:"run_id"`
	Request string `json:"request_id,omitempty"`
	// Task is the id of the only task to return, with its text and its result; "": all, without these.
	Task string `json:"task,omitempty"`
	// Title and Text are those of a new task.
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"`
	Drop  string `json:"drop,omitempty"` // id of a task that is not done
	By    string `json:"by,omitempty"`   // the name of the user
}

// Changes reports whether the request changes anything.
func (r BacklogRequest) Changes() bool { return r.Title != "" || r.Text != "" || r.Drop != "" }

// Backlog are the tasks that the agents of a run share, in the order in which they were posted.
type Backlog struct {
	Tasks  []event.BacklogTask `json:"tasks"`
	Posted string              `json:"posted,omitempty"` // id of the task that the request has added
}

// AskBacklog adds a task to the backlog of a run, drops one, or only returns them. The same request may be sent again.
func AskBacklog(ctx context.Context, c *Client, r BacklogRequest) (b Backlog, err error) {
	if r.Changes() {
		r.Request = orNew(r.Request)
	}
	err = c.askNode(ctx, "backlog", r, &b)
	return b, err
}
