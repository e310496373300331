package control

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/mailbox"
)

// LogHealthEvent returns the event of a node whose entries no server stores, whose entries a
// server stores again, or whose disk is nearly full.
func LogHealthEvent(node, kind string, s event.LogState, at time.Time) event.Published {
	id := strings.ToLower(node)
	return activation.NewPublished(at.UnixMilli(), event.Published{ID: fmt.Sprintf("%s.%s#%d.%s", ClusterRun, id, at.UnixMilli(), kind),
		Run: ClusterRun, Agent: id, Node: node, Kind: kind, Data: s})
}

// RunQueuedEvent returns the event of a run that waits until fewer runs are live.
func RunQueuedEvent(at mailbox.Address, node string, q event.RunQueued, now time.Time) event.Published {
	return activation.NewPublished(now.UnixMilli(), event.Published{ID: fmt.Sprintf("%s#queued.%d", at.Bare(), now.UnixMilli()),
		Run: at.Run(), Agent: at.Agent(), Node: node, Kind: event.KindRunQueued, Data: q})
}

// RunParkedEvent returns the event of a run that waits for people alone.
func RunParkedEvent(at mailbox.Address, node string, r runindex.Report, now time.Time) event.Published {
	return activation.NewPublished(now.UnixMilli(), event.Published{ID: fmt.Sprintf("%s#parked.%d", at.Bare(), r.Place),
		Run: at.Run(), Agent: at.Agent(), Node: node, Kind: event.KindRunParked, Data: event.RunParked{Questions: r.State.Parked}})
}

// checkWritable returns the refusal of a request that needs an entry which cannot be stored
// now; nil while the logs can be written.
func (c *Config) checkWritable() error {
	i := c.logHealth()
	if i == nil || i.Low {
		return nil
	}
	return refuseUnwritable(i)
}

func (c *Config) logHealth() *client.LogHealth {
	if c.LogHealth == nil {
		return nil
	}
	return c.LogHealth()
}

func refuseUnwritable(i *client.LogHealth) error {
	return &client.Error{Code: client.CodeLogs, Text: i.Why, Hint: i.Remedy}
}
