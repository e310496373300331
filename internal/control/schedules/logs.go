package schedules

import (
	"context"
	"fmt"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/schedule"
	"github.com/troupe-run/troupe/mailbox"
)

// schedulesMax is how many schedules there may be, and ownedMax how many one owner may have of them.
const (
	schedulesMax = 1000
	ownedMax     = schedulesMax / 2
)

// logs reads and writes the logs of schedules.
type logs struct{ store mailbox.Store }

// read reads the log of a schedule.
func (c *logs) read(ctx context.Context, id string) (*schedule.State, error) {
	s := &schedule.State{}
	err := runlog.ReadFacts(ctx, c.store, schedule.LogOf(id), func(m mailbox.Message, item mailbox.Item) {
		f, ok, err := schedule.Decode(item.Kind, func(into any) error { return mailbox.Unmarshal(item.Body, into) })
		if ok && err == nil {
			s.Apply(schedule.Entry{Place: m.Place, At: m.At, Fact: f})
		}
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// append appends a fact to the log of a schedule, and reads the log again.
func (c *logs) append(ctx context.Context, id string, f schedule.Fact) (*schedule.State, error) {
	if err := runlog.AppendFacts(ctx, c.store, schedule.LogOf(id), f); err != nil {
		return nil, err
	}
	return c.read(ctx, id)
}

// listIDs lists the schedules that have a log; some may have been deleted.
func (c *logs) listIDs(ctx context.Context) (ids []string, err error) {
	all, err := c.store.Addresses(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("control: list schedules: %w", err)
	}
	for _, at := range all {
		if id, ok := schedule.OfLog(at); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// checkRoom refuses a schedule of an owner, or of an operator (""), if there are as many as there may be. The log of a
// deleted one stays, and does not count. One that cannot be read counts as one of every owner.
func (c *logs) checkRoom(ctx context.Context, owner string) error {
	ids, err := c.listIDs(ctx)
	if err != nil || len(ids) < ownedMax || owner == "" && len(ids) < schedulesMax {
		return err
	}
	count, owned := 0, 0
	for _, id := range ids {
		s, err := c.read(ctx, id)
		if isOutage(ctx, err) {
			return err
		}
		if err != nil || s.Exists() {
			count++
			if err != nil || s.Owner == owner {
				owned++
			}
		}
	}
	switch {
	case count >= schedulesMax:
		return &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("there are %d schedules already", schedulesMax), Hint: "`troupe schedules delete` ends one"}
	case owner != "" && owned >= ownedMax:
		return &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("%s has %d schedules already", owner, ownedMax), Hint: "`troupe schedules delete` ends one"}
	}
	return nil
}

// isOutage reports whether an error says nothing about the log that could not be read.
func isOutage(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || bus.IsUnavailable(err))
}

// find reads a schedule that must exist.
func (c *logs) find(ctx context.Context, id string) (*schedule.State, error) {
	missing := &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no schedule %.80q", id), Hint: "`troupe schedules list` shows them"}
	if names.CheckToken(id) != nil || len(id) > schedule.IDBytesMax(names.TokenBytesMax) {
		return nil, missing
	}
	s, err := c.read(ctx, id)
	if err == nil && !s.Exists() {
		return nil, missing
	}
	return s, err
}

// purge removes the entries of a schedule before a place.
func (c *logs) purge(ctx context.Context, id string, before uint64) error {
	if before == 0 {
		return nil
	}
	if err := c.store.Purge(ctx, schedule.LogOf(id), before); err != nil {
		return fmt.Errorf("control: schedule %s: %w", id, err)
	}
	return nil
}
