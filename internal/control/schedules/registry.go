package schedules

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/schedule"
)

// Registry makes, lists and deletes schedules for clients.
type Registry struct {
	cfg  Config
	logs *logs
}

// NewRegistry returns the registry of a node.
func NewRegistry(cfg Config) *Registry {
	return &Registry{cfg, &logs{cfg.Store}}
}

// TimesOf returns when the run of a request is to begin; empty: now.
func TimesOf(r client.RunRequest) schedule.Times {
	return schedule.Times{At: r.At, Every: r.Every, Zone: r.Zone, Missed: r.Missed, Overlap: r.Overlap, On: r.On, Conversation: r.Conversation}
}

// Create makes a schedule of a request, after it has checked the request as if its run began now. The request with an id
// that exists changes nothing.
func (c *Registry) Create(ctx context.Context, r client.RunRequest) (accepted client.RunAccepted, err error) {
	if err := c.checkSchedulable(r); err != nil {
		return accepted, err
	}
	done, err := c.cfg.Lock(ctx, string(schedule.LogOf(r.RunID)))
	if err != nil {
		return accepted, err
	}
	defer done()
	s, err := c.logs.read(ctx, r.RunID)
	if err != nil {
		return accepted, err
	}
	if s.Exists() {
		return c.acceptExisting(ctx, r, s)
	}
	rule, err := schedule.NewRule(TimesOf(r), c.cfg.Now())
	if bad := (*schedule.Problem)(nil); errors.As(err, &bad) {
		return accepted, &client.Error{Code: client.CodeBad, Text: bad.Text, Hint: bad.Hint}
	} else if err != nil {
		return accepted, err
	}
	stored, accepted, err := c.checkScheduled(ctx, r, rule)
	if err != nil {
		return accepted, err
	}
	salt := newSalt()
	if s, err = c.appendScheduled(ctx, r.RunID, stored, rule, salt); err != nil {
		return accepted, err
	}
	if s.Exists() && !bytes.Equal(s.Salt, salt) { // another node, which has a Lock of its own, was faster
		return c.acceptExisting(ctx, r, s)
	}
	if err := c.openTrigger(ctx, r.RunID, s.Rule); err != nil {
		return accepted, err
	}
	accepted.RunID, accepted.Schedule, accepted.Conversation = "", r.RunID, stored.Conversation
	accepted.Next = describe(r.RunID, s).Next
	return accepted, nil
}

// appendScheduled appends that a schedule is made of a request, and reads what the log decided. The salt tells this
// entry from that of another node.
func (c *Registry) appendScheduled(ctx context.Context, id string, r client.RunRequest, rule schedule.Rule, salt []byte) (*schedule.State, error) {
	owner := r.Owner
	r.Owner = "" // the schedule has it
	request, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("control: schedule: %w", err)
	}
	return c.logs.append(ctx, id, schedule.Scheduled{Request: request, Rule: rule, Owner: owner, Salt: salt})
}

// acceptExisting accepts a request whose schedule exists, unless it belongs to somebody else.
func (c *Registry) acceptExisting(ctx context.Context, r client.RunRequest, s *schedule.State) (client.RunAccepted, error) {
	if err := c.cfg.CheckOwner(ctx, r.RunID, s.Owner); err != nil {
		return client.RunAccepted{}, err
	}
	if err := c.openTrigger(ctx, r.RunID, s.Rule); err != nil { // the request that made it may have failed before it did
		return client.RunAccepted{}, err
	}
	return describeExisting(r, s, c.cfg.Differences), nil
}

// openTrigger has the messages of a schedule's trigger kept from now on. It is harmless to repeat.
func (c *Registry) openTrigger(ctx context.Context, id string, rule schedule.Rule) error {
	if rule.On == "" {
		return nil
	}
	return c.cfg.Triggers.Open(ctx, id, rule.On)
}

// newSalt makes the salt of a schedule.
func newSalt() []byte {
	salt := make([]byte, 16)
	rand.Read(salt) // never fails: crypto/rand ends the process instead
	return salt
}

// checkSchedulable refuses what a schedule cannot repeat.
func (c *Registry) checkSchedulable(r client.RunRequest) error {
	if !c.cfg.Keeps {
		return &client.Error{Code: client.CodeConflict, Text: "a schedule needs a node that stays, and this one ends with its run", Hint: "start `troupe up`, and schedule the run there"}
	}
	if most := schedule.IDBytesMax(names.TokenBytesMax); len(r.RunID) > most {
		return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("the id of a schedule has at most %d bytes", most), Hint: "choose a shorter one, or none"}
	}
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"fork", r.Fork != ""}, {"history", r.History != nil}, {"attach", len(r.Attach) > 0}, {"instead", r.Instead != ""}, {"layers", len(r.Layers) > 0}, {"resume", r.Resume},
	} {
		if field.given {
			return &client.Error{Code: client.CodeBad, Text: field.name + " is of one run, and a schedule has many", Hint: "leave it out; a directory holds what all runs read"}
		}
	}
	return nil
}

// checkScheduled builds the run of a schedule as it will be built when it is due, and returns the request to keep.
// What the user's own command may bring only for the moment does not apply then, so it does not apply now.
func (c *Registry) checkScheduled(ctx context.Context, r client.RunRequest, rule schedule.Rule) (client.RunRequest, client.RunAccepted, error) {
	var none client.RunAccepted
	if err := c.logs.checkRoom(ctx, r.Owner); err != nil {
		return r, none, err
	}
	asked := r.Conversation
	r, err := c.cfg.PrepareRun(ctx, r)
	if err != nil {
		return r, none, err
	}
	r.At, r.Every, r.Zone, r.On, r.Missed, r.Overlap = "", "", "", "", "", ""
	r.Trace, r.Interactive, r.Caller = "", false, "schedule "+r.RunID
	tried := r
	tried.RunID = client.NewID()
	if rule.On != "" { // the longest message must fit
		tried.Prompt += quoteMessage(rule.On, tried.RunID, bytes.Repeat([]byte("x"), bus.TriggerBytesMax))
	}
	accepted, err := c.cfg.BuildRun(ctx, tried, asked)
	if refused := (*client.Error)(nil); errors.As(err, &refused) && refused.Code == client.CodeForbidden {
		known := *refused
		known.Hint += "; what a schedule names must be below a root of the node: troupe up --root DIR"
		return r, none, &known
	}
	if err != nil {
		return r, none, err
	}
	if rule.On != "" {
		if err := c.cfg.Triggers.Prepare(ctx); err != nil {
			if bus.IsUnavailable(err) {
				return r, none, err
			}
			return r, none, &client.Error{Code: client.CodeConflict, Text: err.Error(), Hint: "an operator makes it: troupe-node --setup, with the credential of setup"}
		}
	}
	r.RunID = ""
	return r, accepted, nil
}

// Delete ends a schedule.
func (c *Registry) Delete(ctx context.Context, id string) error {
	s, err := c.logs.find(ctx, id)
	if err == nil {
		err = c.cfg.CheckOwner(ctx, id, s.Owner)
	}
	if err != nil {
		return err
	}
	isTrigger := s.Rule.On != ""
	if s, err = c.logs.append(ctx, id, schedule.Ended{}); err != nil {
		return err
	}
	if isTrigger { // a scheduler with an older state may open it again, so LookAtSchedule closes it once more, and purges
		return c.cfg.Triggers.Close(ctx, id)
	}
	return c.logs.purge(ctx, id, s.Deleted)
}
