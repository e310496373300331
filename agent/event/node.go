package event

// LogState is the data of logs.unavailable, logs.available and logs.low:
// whether a node can write the logs that it acts on.
type LogState struct {
	// WaitedMS is how long the oldest entry has waited to be written.
	WaitedMS int64 `json:"waited_ms"`
	// Waiting is how many entries wait, and Why the server's error.
	Waiting int    `json:"waiting,omitempty"`
	Why     string `json:"why,omitempty"`
	// Path is the directory whose disk fails or is nearly full, FreeBytes its free
	// space (-1: unknown), Remedy the action to take.
	Path      string `json:"path,omitempty"`
	FreeBytes int64  `json:"free_bytes,omitempty"`
	Remedy    string `json:"remedy,omitempty"`
}

// ShardMoved is the data of shard.taken and shard.released.
type ShardMoved struct {
	Pool  string `json:"pool"`
	Shard int    `json:"shard"`
	// Why is started, expired, rebalanced or drained.
	Why   string `json:"why"`
	Epoch uint64 `json:"epoch"`
	// Other is the node that held the shard before, or that will hold it.
	Other string `json:"other,omitempty"`
}

// ShardUnreadable is the data of shard.unreadable and shard.readable.
type ShardUnreadable struct {
	Pool  string `json:"pool"`
	Shard int    `json:"shard"`
	// Why is the error of reading the shard.
	Why string `json:"why,omitempty"`
}

// RunQueued is the data of run.queued: a node reports that a run waits until fewer
// runs are live there. The event is in no log.
type RunQueued struct {
	// Position is the run's place in the queue of the node when it was queued, from 1.
	Position int `json:"position"`
	// MaxLive is how many runs may be live on the node.
	MaxLive int `json:"max_live"`
}

// RunParked is the data of run.parked: a node reports that a run waits for people alone. The event
// is in no log.
type RunParked struct {
	// Questions is how many agents wait for an answer.
	Questions int `json:"questions"`
}

// RunReconciled is the data of run.reconciled: a node has looked for the unfinished runs of its logs
// that no node owned. The event is in no log.
type RunReconciled struct {
	// Why is started or interval.
	Why string `json:"why"`
	// Resumed runs continue on this node, Queued ones wait for their turn there, and Ended ones had ended without a
	// result in the index. None of them had an owner.
	Resumed int `json:"resumed"`
	Queued  int `json:"queued"`
	Ended   int `json:"ended"`
	// Waiting runs are passivated until an answer or a timer; Owned ones are live or queued.
	Waiting int `json:"waiting"`
	Owned   int `json:"owned"`
}

// QueryRefused is the data of query.refused: an answer that waited for a node has no effect. The event is in no log.
type QueryRefused struct {
	Query string `json:"query"`
	By    string `json:"by,omitempty"` // who answered, as the client says it
	// Code and Why are those of the refusal of a direct answer.
	Code string `json:"code"`
	Why  string `json:"why"`
}

// RunRemoved is the data of run.removed: retention removed a run that had ended. The event is in no log.
type RunRemoved struct {
	// Why is age, size (of all that is stored), logs, index or blobs (which were nearly full), or unfinished (an
	// earlier removal was cut short).
	Why string `json:"why"`
	// Ended is when the run had ended, Bytes how much its logs and blobs held.
	Ended string `json:"ended,omitempty"`
	Bytes uint64 `json:"bytes"`
}

// ScheduleFired is the data of schedule.fired: a run of a schedule began. The event is in no log.
type ScheduleFired struct {
	Schedule string `json:"schedule_id"`
	RunID    string `json:"run_id"`
	// Due is when the run was due, or when the message came that began it. Missed counts the earlier due
	// times for which the run stands.
	Due    string `json:"due"`
	Missed int    `json:"missed,omitempty"`
}

// ScheduleMissed is the data of schedule.missed: due times of a schedule began no run. The event is in no log.
type ScheduleMissed struct {
	Schedule string `json:"schedule_id"`
	// Due is the newest of them, and Missed counts them.
	Due    string `json:"due"`
	Missed int    `json:"missed"`
	// Why is late (no node was there), overlap (the run before was at work) or refused (by the node, as Detail says).
	Why    string `json:"why"`
	Detail string `json:"detail,omitempty"`
}
