package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/control/schedules"
	"github.com/troupe-run/troupe/internal/lane"
)

// scheduleConfig is what schedules need of the control service. It uses other parts only when it is called.
func scheduleConfig(p *parts) schedules.Config {
	cfg, runs := p.cfg, scheduledRuns{p}
	return schedules.Config{
		Store: cfg.Post, Triggers: cfg.Triggers, Keeps: cfg.KeepsSchedules, HoldsLog: cfg.HoldsLog, Now: cfg.Now, Logger: cfg.logger(), Publish: cfg.publishScheduled,
		Lock: p.locks.lockRun, CheckOwner: checkOwnSchedule, Differences: differingScheduled,
		PrepareRun: runs.prepare, BuildRun: runs.build, OpenRun: runs.open, IsAtWork: runs.isAtWork,
		NewRefusal: func(err error) *client.Error { return cfg.newRefusal("run", err) },
	}
}

// publishScheduled publishes an event of a schedule. Two nodes that do the same give it the same id.
func (c *Config) publishScheduled(kind event.Kind, name string, data any) {
	c.Publish(activation.NewPublished(c.Now().UnixMilli(), event.Published{ID: fmt.Sprintf("%s#%s.%s", ClusterRun, name, kind), Run: ClusterRun,
		Agent: strings.ToLower(c.Name), Node: c.Name, Kind: kind, Data: data}))
}

// checkCreator refuses to make a schedule for a connection without a credential.
func checkCreator(ctx context.Context) error {
	if anyone, ok := ctx.Value(anyoneKey{}).(bool); ok && anyone {
		return &client.Error{Code: client.CodeForbidden, Text: "a connection without a credential makes no schedule", Hint: "use the credential of the user in node.json, and name a reply subject"}
	}
	return nil
}

// scheduledRuns are the runs of schedules: they are opened as those of clients are.
type scheduledRuns struct{ *parts }

func (c scheduledRuns) prepare(ctx context.Context, r client.RunRequest) (client.RunRequest, error) {
	if err := c.admission.checkRoom(ctx); err != nil {
		return r, err
	}
	return c.opener.resolveRequest(ctx, r)
}

func (c scheduledRuns) build(ctx context.Context, r client.RunRequest, asked string) (client.RunAccepted, error) {
	_, accepted, err := c.opener.buildFirstEntry(ctx, r, asked)
	return accepted, err
}

func (c scheduledRuns) open(ctx context.Context, r client.RunRequest) error {
	if err := c.owners.checkOwnRun(ctx, r.RunID, r.Owner); err != nil {
		return err
	}
	_, err := c.opener.openRun(ctx, r)
	return err
}

func (c scheduledRuns) isAtWork(ctx context.Context, run string) (bool, error) {
	st, err := c.lanes.standingOf(ctx, run)
	return st.Phase == lane.Unbegun || st.Phase == lane.Live, err
}
