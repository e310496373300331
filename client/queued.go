package client

// RunQueued is the data of run.queued: a node says that a run waits until fewer runs are
// live there. The event is in no log.
type RunQueued struct {
	// Position is the run's place in the queue of the node when it was queued, from 1.
	Position int `json:"position"`
	// MaxLive is how many runs may be live on the node.
	MaxLive int `json:"max_live"`
}
