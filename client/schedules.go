package client

import (
	"context"
	"fmt"

	"github.com/troupe-run/troupe/internal/schedule"
)

// ScheduleInfo is a schedule: a request whose runs begin at times, or with messages. Times are RFC 3339.
type ScheduleInfo struct {
	ID string `json:"schedule_id"`
	// Next is when the next run is due; "": no more, or it has a trigger.
	Next string `json:"next,omitempty"`
	// At, Every, Zone, Missed, Overlap and On are the rule: see RunRequest.
	At      string `json:"at,omitempty"`
	Every   string `json:"every,omitempty"`
	Zone    string `json:"zone,omitempty"`
	Missed  string `json:"missed,omitempty"`
	Overlap string `json:"overlap,omitempty"`
	On      string `json:"on,omitempty"`
	Title   string `json:"title"`
	// Conversation is the conversation in which the runs are.
	Conversation string `json:"conversation_id,omitempty"`
	Created      string `json:"created"`
	// LastRun is the newest run, and LastDue when it was due.
	LastRun string `json:"last_run,omitempty"`
	LastDue string `json:"last_due,omitempty"`
	// Fired counts runs, MissedCount due times that began none, and Refused runs that the node refused, the newest
	// because of Error. If a node cannot read the log of the schedule, Error says why, and List
	// returns it with its ID alone.
	Fired       int    `json:"fired"`
	MissedCount int    `json:"missed_count"`
	Refused     int    `json:"refused"`
	Error       string `json:"error,omitempty"`
	// Request is the request of each run. Only a request for one schedule gets it.
	Request *RunRequest `json:"request,omitempty"`
}

// Schedules are the schedules that the nodes keep.
type Schedules struct{ Client *Client }

// List lists the schedules, the one that is due next first.
func (l Schedules) List(ctx context.Context) ([]ScheduleInfo, error) {
	list := []ScheduleInfo{}
	err := l.Client.askNode(ctx, "schedules", schedule.Request{}, &list)
	return list, err
}

// Get returns one schedule with its request.
func (l Schedules) Get(ctx context.Context, id string) (ScheduleInfo, error) {
	var list []ScheduleInfo
	err := l.Client.askNode(ctx, "schedules", schedule.Request{ID: id}, &list)
	if err != nil {
		return ScheduleInfo{}, err
	}
	if len(list) == 0 {
		return ScheduleInfo{}, &Error{Code: CodeNotFound, Text: fmt.Sprintf("there is no schedule %.80q", id), Hint: "`troupe schedules list` shows them"}
	}
	return list[0], nil
}

// Delete ends a schedule. Its runs stay.
func (l Schedules) Delete(ctx context.Context, id string) error {
	return l.Client.askNode(ctx, "delete", DeleteRequest{Schedule: id}, &struct{}{})
}
