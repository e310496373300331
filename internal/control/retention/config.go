package retention

import (
	"context"
	"log/slog"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/lane"
	"github.com/troupe-run/troupe/mailbox"
)

// Config is what retention needs of its node.
type Config struct {
	Store mailbox.Store
	Index *runindex.Index
	// Node is the name of the node.
	Node   string
	Now    func() time.Time
	Logger *slog.Logger
	// Publish publishes an event, and PublishLow that of stores that are nearly full.
	Publish    func(event.Published)
	PublishLow func(s event.LogState, at time.Time)
	// Age, Bytes, LogsStored, BlobRoom and BlobStrays are those of the node; see the Config of package control.
	Age        time.Duration
	Bytes      int64
	LogsStored func(context.Context) (bytes uint64, inFullest func(mailbox.Address) bool, err error)
	BlobRoom   func(ctx context.Context, run string) (used, most uint64, err error)
	BlobStrays func(ctx context.Context, known func(run string) bool, each func(run string, bytes uint64, newest time.Time)) error
	// HoldsJob reports whether this node is the one that removes runs.
	HoldsJob func(ctx context.Context) (bool, error)
	// FindRun returns the row of a run, or the reason why it is not there.
	FindRun func(ctx context.Context, run string) (runindex.Row, error)
	// ConversationOf returns the conversation of a run, ReadLane its lane, and SettledLane that with the ends of runs that
	// the lane does not know yet.
	ConversationOf func(ctx context.Context, row runindex.Row) (string, error)
	ReadLane       func(ctx context.Context, conversation string) (*lane.State, error)
	SettledLane    func(ctx context.Context, conversation string) (s *lane.State, ended []lane.Fact, err error)
	// RemoveRun removes a run, DeleteConversation the lane of a conversation without runs, and RemoveTombstones some
	// tombstones of runs that were deleted long ago.
	RemoveRun          func(ctx context.Context, run string, unopened bool) (reply client.Deleted, size uint64, err error)
	DeleteConversation func(ctx context.Context, conversation string) (any, error)
	RemoveTombstones   func(ctx context.Context, listed map[string]bool, after string, now time.Time) (n int, last string, err error)
}
