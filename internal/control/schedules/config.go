// Package schedules keeps the schedules of a node: it makes, lists and deletes them for clients (Registry), and begins their
// runs when they are due or a message comes (Scheduler). When a run is due is decided by package internal/schedule, from
// the log of the schedule; how a run is opened, and for whom, by the control service.
package schedules

import (
	"context"
	"log/slog"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/mailbox"
)

// Config is what schedules need of their node.
type Config struct {
	Store    mailbox.Store
	Triggers *bus.Triggers
	// Keeps says that this node begins the runs of schedules. HoldsLog reports whether it does so for a schedule; nil: for
	// all. See the Config of package control.
	Keeps    bool
	HoldsLog func(mailbox.Address) bool
	Now      func() time.Time
	Logger   *slog.Logger
	// Publish publishes an event of a schedule. Events of the same kind and name are the same event.
	Publish func(kind event.Kind, name string, data any)

	// Lock waits until no other request makes the schedule of a log.
	Lock func(ctx context.Context, log string) (done func(), err error)
	// CheckOwner refuses a request about the schedule of somebody else.
	CheckOwner func(ctx context.Context, id, owner string) error
	// Differences names the fields in which a request differs from the one with which its schedule was made.
	Differences func(r, made client.RunRequest) []string

	// PrepareRun refuses a run for which there is no room, and returns its request with the conversation and the owner that
	// it means.
	PrepareRun func(ctx context.Context, r client.RunRequest) (client.RunRequest, error)
	// BuildRun builds a run and stores nothing. asked is the conversation that the client named.
	BuildRun func(ctx context.Context, r client.RunRequest, asked string) (client.RunAccepted, error)
	// OpenRun opens a run for the owner in its request, or continues the one that has its id.
	OpenRun func(ctx context.Context, r client.RunRequest) error
	// NewRefusal returns the error of OpenRun as clients see it.
	NewRefusal func(err error) *client.Error
	// IsAtWork reports whether a run has not ended.
	IsAtWork func(ctx context.Context, run string) (bool, error)
}
