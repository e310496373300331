package event

import "github.com/troupe-run/troupe/agent/spec"

// BacklogTask is a task of the backlog that the agents of a run share. It is backlog.posted, backlog.claimed,
// backlog.returned, backlog.done and backlog.dropped: the task as the event leaves it, without the text of
// backlog.posted and the result of backlog.done in the others.
type BacklogTask struct {
	Task  string `json:"task"`
	Title string `json:"title,omitempty"`
	State string `json:"state"` // open, claimed, done or dropped
	Text  string `json:"text,omitempty"`
	// PostedBy is the agent that posted the task, or By the user who did.
	PostedBy spec.ID `json:"posted_by,omitempty"`
	By       string  `json:"by,omitempty"`
	// Agent has claimed the task or has done it; in backlog.returned it had claimed it.
	Agent spec.ID `json:"agent,omitempty"`
	Name  string  `json:"name,omitempty"` // its definition
	// UntilMS is when the lease of the claim ends if Agent sends nothing before, in Unix milliseconds.
	UntilMS int64  `json:"until_ms,omitempty"`
	Result  string `json:"result,omitempty"`
	Why     string `json:"why,omitempty"` // backlog.returned and backlog.dropped
}
