package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
)

// Kinds of events about the logs of a node.
const (
	JournalUnavailable = "journal.unavailable"
	JournalAvailable   = "journal.available"
	JournalLow         = "journal.low"
)

// JournalState is the data of journal.unavailable, journal.available and journal.low:
// whether a node can write the logs that it acts on.
type JournalState struct {
	// WaitedMS is how long the oldest entry waits for its place, or has waited.
	WaitedMS int64 `json:"waited_ms"`
	// Waiting is how many entries do, and Why what the server says of it.
	Waiting int    `json:"waiting,omitempty"`
	Why     string `json:"why,omitempty"`
	// Path is the directory whose disk fails or is nearly full, FreeBytes what is free
	// there (-1: unknown), Remedy what to do.
	Path      string `json:"path,omitempty"`
	FreeBytes int64  `json:"free_bytes,omitempty"`
	Remedy    string `json:"remedy,omitempty"`
}

// Journal makes the event of a node whose entries nobody stores, or does again, or whose
// disk is nearly full.
func Journal(node, kind string, s JournalState, at time.Time) life.Event {
	id := strings.ToLower(node)
	return life.Event{V: 1, ID: fmt.Sprintf("%s.%s#%d.%s", ClusterRun, id, at.UnixMilli(), kind), TS: life.Stamp(at.UnixMilli()),
		Run: ClusterRun, Agent: id, Node: node, Kind: kind, Data: s}
}

// QueuedRun makes the event of a run that waits until fewer runs are live.
func QueuedRun(at mailbox.Address, node string, q client.RunQueued, now time.Time) life.Event {
	return life.Event{V: 1, ID: fmt.Sprintf("%s#queued.%d", at.Bare(), now.UnixMilli()), TS: life.Stamp(now.UnixMilli()),
		Run: at.Run(), Agent: at.Agent(), Node: node, Kind: "run.queued", Data: q}
}

// unwritable is the refusal of what needs an entry that cannot be stored now; nil while
// the logs can be written.
func (c *Control) unwritable() error {
	i := c.journal()
	if i == nil || i.Low {
		return nil
	}
	return refuseJournal(i)
}

func (c *Control) journal() *client.JournalInfo {
	if c.cfg.Journal == nil {
		return nil
	}
	return c.cfg.Journal()
}

func refuseJournal(i *client.JournalInfo) error {
	return &client.Error{Code: client.CodeJournal, Text: i.Why, Hint: i.Remedy}
}

// truly is an error with its true reason: what only says that nobody answered, while
// the logs cannot be written, is that.
func (c *Control) truly(err error) error {
	var known *client.Error
	if i := c.journal(); i != nil && !i.Low && !errors.As(err, &known) && (bus.Unavailable(err) || errors.Is(err, context.DeadlineExceeded)) {
		return refuseJournal(i)
	}
	return err
}
