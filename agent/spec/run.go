package spec

import "cmp"

// RunLimits are the limits of a whole run. Zero means the default, except for
// Tokens and Nano, where it means no limit.
type RunLimits struct {
	Tokens   int64 `msgpack:"t,omitempty" json:"tokens"`
	Nano     int64 `msgpack:"n,omitempty" json:"nano_usd"`
	Calls    int64 `msgpack:"c,omitempty" json:"tool_calls"`
	Depth    int   `msgpack:"d,omitempty" json:"depth"`
	Children int   `msgpack:"h,omitempty" json:"children"` // live ones of one agent
	Agents   int   `msgpack:"a,omitempty" json:"agents"`
	Messages int   `msgpack:"m,omitempty" json:"messages"` // between agents
	// Backlog is how many tasks the shared backlog may ever have, and LeaseMS how long a claim of one lasts after the last
	// message of the agent that has it; 0: BacklogDefault, LeaseDefaultMS.
	Backlog int   `msgpack:"b,omitempty" json:"backlog,omitempty"`
	LeaseMS int64 `msgpack:"bl,omitempty" json:"backlog_lease_ms,omitempty"`
}

// Limits of the shared backlog.
const (
	BacklogDefault = 256
	BacklogMost    = 1024 // whatever the limit of the run
	LeaseDefaultMS = 30 * 60_000
)

// Merge applies the limits that are set over those of base.
func (l RunLimits) Merge(base RunLimits) RunLimits {
	return RunLimits{Tokens: cmp.Or(l.Tokens, base.Tokens), Nano: cmp.Or(l.Nano, base.Nano), Calls: cmp.Or(l.Calls, base.Calls),
		Depth: cmp.Or(l.Depth, base.Depth), Children: cmp.Or(l.Children, base.Children), Agents: cmp.Or(l.Agents, base.Agents), Messages: cmp.Or(l.Messages, base.Messages),
		Backlog: cmp.Or(l.Backlog, base.Backlog), LeaseMS: cmp.Or(l.LeaseMS, base.LeaseMS)}
}

// HistoryOrigin says which history the root of a run begins with.
type HistoryOrigin struct {
	Run      string `msgpack:"r,omitempty" json:"run,omitempty"`   // forked from; "": imported
	Turn     int    `msgpack:"t,omitempty" json:"turn"`            // after which it was taken
	Messages int    `msgpack:"m" json:"messages"`                  // in all
	Bound    int64  `msgpack:"b,omitempty" json:"bound,omitempty"` // of its tokens
	// Conversation is set if Run is the run before this one in its conversation, and Reason says how that one ended.
	Conversation string `msgpack:"v,omitempty" json:"conversation_id,omitempty"`
	Reason       Reason `msgpack:"e,omitempty" json:"stop_reason,omitempty"`
}
