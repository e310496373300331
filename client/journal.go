package client

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
)

// clusterRun stands for the run in events of nodes.
const clusterRun = "_cluster"

// WatchJournals calls each when a node says that it cannot write its logs, or that it
// can again: then the info is nil. Events may be lost; Nodes tells how the node that
// answers stands. It ends with stop.
func (c *Client) WatchJournals(each func(node string, info *JournalInfo)) (stop func(), err error) {
	subject, err := c.names.RunEvents(clusterRun)
	if err != nil {
		return nil, err
	}
	sub, err := c.nc.Subscribe(subject, func(m *nats.Msg) {
		e, ok := decode(m.Data)
		if !ok {
			return // not an event of ours
		}
		var info JournalInfo
		switch e.Kind {
		case "journal.available":
			each(e.Node, nil)
		case "journal.unavailable", "journal.low":
			if json.Unmarshal(e.Data, &info) == nil {
				info.Low = e.Kind == "journal.low"
				each(e.Node, &info)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("client: watch journals: %w", err)
	}
	return func() { unsubscribe(sub) }, nil
}
