package client

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
)

// clusterRun replaces the run id in events about nodes.
const clusterRun = "_cluster"

// WatchLogHealth calls each when a node reports that it cannot write its logs, and when it can
// again: then the info is nil. Events may be lost; Nodes returns the state of the node that
// answers. The watch ends with stop.
func (c *Client) WatchLogHealth(each func(node string, info *LogHealth)) (stop func(), err error) {
	subject, err := c.names.RunEvents(clusterRun)
	if err != nil {
		return nil, err
	}
	sub, err := c.nc.Subscribe(subject, func(m *nats.Msg) {
		e, ok := decodeEvent(m.Data)
		if !ok {
			return // not an event of a node
		}
		var info LogHealth
		switch e.Kind {
		case event.KindLogsAvailable:
			each(e.Node, nil)
		case event.KindLogsUnavailable, event.KindLogsLow:
			if json.Unmarshal(e.Data, &info) == nil {
				info.Low = e.Kind == event.KindLogsLow
				each(e.Node, &info)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("client: watch the health of logs: %w", err)
	}
	return func() { dropSubscription(sub) }, nil
}

// LogHealth says why a node cannot write its logs, or that their disk is Low: in that case
// live runs continue, and new ones are refused.
type LogHealth struct {
	Since     string `json:"since,omitempty"`
	Why       string `json:"why"`
	Remedy    string `json:"remedy"`
	Path      string `json:"path,omitempty"`
	FreeBytes int64  `json:"free_bytes,omitempty"`
	Low       bool   `json:"low,omitempty"`
}
