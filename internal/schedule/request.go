package schedule

// Request asks for the schedules, or for one of them.
type Request struct {
	ID string `json:"schedule_id,omitempty"`
}
