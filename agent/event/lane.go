package event

// LaneQueued is lane.queued: the run waits until the earlier runs of its conversation have ended.
type LaneQueued struct {
	Conversation string `json:"conversation_id"`
}

// LaneStarted is lane.started: the turn of the run has come.
type LaneStarted struct {
	Conversation string `json:"conversation_id"`
	After        string `json:"after,omitempty"` // the run whose history it continues
}

// LaneFailed is lane.failed: the run could not begin, so it has ended and the next one starts.
type LaneFailed struct {
	Conversation string `json:"conversation_id"`
	Why          string `json:"why"`
}
