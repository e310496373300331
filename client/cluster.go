package client

import "context"

// ClusterInfo describes the nodes, who holds which logs, the streams of the logs, and the throttles of the node that
// answers.
type ClusterInfo struct {
	Nodes []NodeInfo `json:"nodes"`
	// LeaseMS is how long a lease lasts after its last renewal; 0: one node owns all logs.
	LeaseMS   int64          `json:"lease_ms"`
	Pools     []PoolInfo     `json:"pools"`
	Leases    []LeaseInfo    `json:"leases"`
	Streams   []StreamInfo   `json:"streams"`
	Throttles []ThrottleInfo `json:"throttles"`
}

// PoolInfo is a node pool: the number of its shards and streams, how many shards have a holder, and the names of the
// nodes that serve it.
type PoolInfo struct {
	Name    string   `json:"name"`
	Shards  int      `json:"shards"`
	Streams int      `json:"streams"`
	Held    int      `json:"held"`
	Nodes   []string `json:"nodes"`
}

// LeaseInfo is the lease of a shard: which node holds it, and under which epoch (the fencing token).
type LeaseInfo struct {
	Pool   string `json:"pool"`
	Shard  int    `json:"shard"`
	Node   string `json:"node"` // its id
	Epoch  uint64 `json:"epoch"`
	Lapsed bool   `json:"lapsed,omitempty"` // the node has not renewed it: another one may take the shard
}

// StreamInfo is a stream that holds logs. Logs in files are one stream of the kind "files", which counts no messages.
type StreamInfo struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"` // jetstream or files
	Pool     string `json:"pool"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	BytesMax uint64 `json:"bytes_max"` // 0: no limit
	// Leader is the server that leads the stream; "" of a server without a cluster. Replicas is the configured number, and
	// Behind names the replicas that lag or are offline.
	Leader   string   `json:"leader,omitempty"`
	Replicas int      `json:"replicas,omitempty"`
	Behind   []string `json:"behind,omitempty"`
	// Error says why the stream did not answer, for example because it has no leader: then its figures are not known.
	Error string `json:"error,omitempty"`
}

// ThrottleInfo is the throttle of a provider's model, as the node that answers has it. Provider and Model are empty if
// the node has not used the model: another node reported the throttle.
type ThrottleInfo struct {
	Name     string `json:"name"` // a digest of provider, address, model and key
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	ClosedMS int64  `json:"closed_ms"`     // how much longer
	Why      string `json:"why,omitempty"` // why it is closed
	Breaker  string `json:"breaker,omitempty"`
	Window   int    `json:"window"`    // calls that may be in flight at once
	InFlight int    `json:"in_flight"` // calls of this node
	Waiting  int    `json:"waiting"`   // calls of this node
	// RequestsPerMinute and TokensPerMinute count for all nodes together; 0: no rate is known.
	RequestsPerMinute int64 `json:"requests_per_minute,omitempty"`
	TokensPerMinute   int64 `json:"tokens_per_minute,omitempty"`
}

// Cluster asks a node what it knows of the cluster. Only operators may ask.
func Cluster(ctx context.Context, c *Client) (ClusterInfo, error) {
	var info ClusterInfo
	err := c.askNode(ctx, "cluster", struct{}{}, &info)
	return info, err
}
