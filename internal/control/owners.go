package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/control/schedules"
	"github.com/troupe-run/troupe/internal/lane"
	"github.com/troupe-run/troupe/internal/schedule"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// The owner of a request is the name in its subject, troupe.cmd.as.NAME.VERB: the permissions of the NATS server say who may
// publish there, so the name is verified. A request without one comes from an operator, who may do everything. The owner of
// a run is in its first entry and never changes.

// ownerKey is the key of the owner that the subject of a request names.
type ownerKey struct{}

// requestOwner returns the owner who sent a request; "": an operator.
func requestOwner(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string) // requests of this node itself have none
	return owner
}

// ownerCheck tells whose a run is, and refuses owners what belongs to others.
type ownerCheck struct{ cfg *Config }

// errOperators refuses a verb that concerns the runs of all owners.
var errOperators = &client.Error{Code: client.CodeForbidden, Text: "only an operator may do this: it concerns the runs of all owners",
	Hint: "use a credential that may publish to troupe.cmd.>, without --as"}

// errVerifiedCaller refuses a caller that a node states of a prompt whose sender it has verified.
var errVerifiedCaller = &client.Error{Code: client.CodeForbidden, Text: fmt.Sprintf("only a node states a caller that begins with %q", names.AgentCaller),
	Hint: "state another caller"}

func notOwner(what, id, owner string) error {
	return &client.Error{Code: client.CodeForbidden, Text: fmt.Sprintf("the %s %.80q does not belong to %s", what, id, owner),
		Hint: "its owner can do this, or an operator: a credential that may publish to troupe.cmd.>, without --as"}
}

// notNamedOwner refuses the request of an operator whose run would belong to an owner that the request does not name.
func notNamedOwner(conversation, owner, named string) error {
	e := &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the conversation %.80q belongs to %s, and so would the run", conversation, owner),
		Hint: fmt.Sprintf("if %s may own and read the run, name the owner: `owner` in the request, `troupe run --owner %s`; otherwise name another conversation", owner, owner)}
	if owner == "" {
		e.Text, e.Hint = fmt.Sprintf("the conversation %.80q belongs to operators, not to %.80q", conversation, named), "leave `owner` out, or name another conversation"
	}
	return e
}

// checkNamedOwner rejects a name that no owner can have.
func checkNamedOwner(owner string) error {
	if owner == "" {
		return nil
	}
	if _, err := (names.Names{}).As(owner); err != nil {
		return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("owner: %v", err), Hint: "use the name of an owner: docs/security.md#owners"}
	}
	return nil
}

// checkOwner refuses a request about what belongs to somebody else, and writes the verified name of the owner into it.
// Requests that are not named here are refused to owners.
func (c *ownerCheck) checkOwner(ctx context.Context, request any) error {
	owner := requestOwner(ctx)
	if owner == "" {
		return nil
	}
	run := ""
	switch r := request.(type) {
	case *struct{}, *NodesRequest, *client.ListRequest, *client.ConversationsRequest, *client.LaneRequest, *schedule.Request:
		return nil // the handler looks whose it is
	case *client.RunRequest:
		r.Owner = owner
		if strings.HasPrefix(r.Caller, names.AgentCaller) {
			return errVerifiedCaller
		}
		return c.checkOwnSources(ctx, *r)
	case *client.DeleteRequest:
		if run = r.RunID; run == "" {
			return nil // a conversation or a schedule, and the handler looks whose it is
		}
	case *client.GetRequest:
		run = r.RunID
	case *client.CancelRequest:
		run, r.By = r.RunID, owner
	case *client.SteerRequest:
		run = r.RunID
	case *client.AnswerRequest:
		run, r.By = r.RunID, owner
	case *client.PolicyRequest:
		run, r.By = r.RunID, owner
	case *client.BudgetRequest:
		run, r.By = r.RunID, owner
	case *client.ContextRequest:
		run, r.By = r.RunID, owner
	case *client.BacklogRequest:
		run, r.By = r.RunID, owner
	case *client.PermissionsRequest:
		run, r.By = r.RunID, owner
	case *client.EventsRequest:
		run = r.RunID
	case *client.TranscriptRequest:
		run = r.RunID
	case *client.ExportRequest:
		run = r.RunID
	case *client.RecallRequest:
		run = r.RunID
	case *client.AttachRequest:
		run = r.RunID
	case *client.LogsRequest:
		run = r.RunID
	case *client.BlobRequest:
		run = r.RunID
	default:
		return errOperators
	}
	return c.checkOwnRun(ctx, run, owner)
}

// checkOwnSources checks the runs that a new run would continue, or begin from.
func (c *ownerCheck) checkOwnSources(ctx context.Context, r client.RunRequest) error {
	if times := schedules.TimesOf(r); !times.IsEmpty() { // the id is that of a schedule, which its creation checks
		if on := r.On; on != "" && on != r.Owner && !strings.HasPrefix(on, r.Owner+".") {
			return &client.Error{Code: client.CodeForbidden, Text: fmt.Sprintf("the trigger %.80q is not one of %s", on, r.Owner), Hint: "its name is " + r.Owner + ", or begins with it and a dot"}
		}
	} else if err := c.checkOwnRun(ctx, r.RunID, r.Owner); err != nil {
		return err
	}
	if r.Fork == "" {
		return nil
	}
	from, _, _ := strings.Cut(r.Fork, "@")
	return c.checkOwnRun(ctx, from, r.Owner)
}

// checkOwnRun refuses a run of somebody else. The verb itself explains a run that does not exist.
func (c *ownerCheck) checkOwnRun(ctx context.Context, run, owner string) error {
	has, exists, err := c.ownerOf(ctx, run)
	if err != nil || !exists || has == owner {
		return err
	}
	return notOwner("run", run, owner)
}

// ownerOf returns the owner of a run, from the first entry of its log: the row is a hint. exists is false for a run without
// a log and without a row.
func (c *ownerCheck) ownerOf(ctx context.Context, run string) (owner string, exists bool, err error) {
	row, listed, err := c.cfg.Runs.Get(ctx, run)
	if err != nil || !listed && bounds.CheckRunID(run) != nil {
		return "", false, err
	}
	o, found, err := readOpened(ctx, c.cfg.Post, run)
	switch {
	case err != nil:
		return "", false, err
	case !found:
		return row.Owner, listed, nil
	}
	return o.Owner, true, nil
}

// readOpened returns what a run was opened with: the first entry of its log. found is false for a run without one.
func readOpened(ctx context.Context, post mailbox.Post, run string) (o supervisor.Opened, found bool, err error) {
	at := mailbox.At(run, mailbox.Super)
	err = post.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
		if e, err := mailbox.Decode(m.Data); err == nil && len(e.Items) > 0 {
			found = e.Items[0].Kind == o.Kind() && mailbox.Unmarshal(e.Items[0].Body, &o) == nil
		}
		return runlog.ErrEnough
	})
	if err != nil && !errors.Is(err, runlog.ErrEnough) {
		return o, false, fmt.Errorf("control: read %s: %w", at, err)
	}
	return o, found, nil
}

// checkOwnLane refuses the conversation of somebody else.
func checkOwnLane(ctx context.Context, conversation string, s *lane.State) error {
	if owner := requestOwner(ctx); owner != "" && s.Owner != owner {
		return notOwner("conversation", conversation, owner)
	}
	return nil
}

// checkOwnSchedule refuses the schedule of somebody else.
func checkOwnSchedule(ctx context.Context, id, owner string) error {
	if asks := requestOwner(ctx); asks != "" && owner != asks {
		return notOwner("schedule", id, asks)
	}
	return nil
}

// ownsRow reports whether the owner who sent a request may see a row.
func ownsRow(ctx context.Context, row runindex.Row) bool {
	owner := requestOwner(ctx)
	return owner == "" || row.Owner == owner
}
