package control

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/schedule"
	"github.com/troupe-run/troupe/mailbox"
)

// schedulesMax is how many schedules there may be.
const schedulesMax = 1000

// scheduleLogs reads and writes the logs of schedules.
type scheduleLogs struct{ cfg *Config }

// readSchedule reads the log of a schedule.
func (c *scheduleLogs) readSchedule(ctx context.Context, id string) (*schedule.State, error) {
	s := &schedule.State{}
	err := runlog.ReadFacts(ctx, c.cfg.Post, schedule.LogOf(id), func(m mailbox.Message, item mailbox.Item) {
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

// appendToSchedule appends a fact to the log of a schedule, and reads the log again.
func (c *scheduleLogs) appendToSchedule(ctx context.Context, id string, f schedule.Fact) (*schedule.State, error) {
	if err := runlog.AppendFacts(ctx, c.cfg.Post, schedule.LogOf(id), f); err != nil {
		return nil, err
	}
	return c.readSchedule(ctx, id)
}

// listScheduleIDs lists the schedules that have a log; some may have been deleted.
func (c *scheduleLogs) listScheduleIDs(ctx context.Context) (ids []string, err error) {
	logs, err := c.cfg.Post.Addresses(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("control: list schedules: %w", err)
	}
	for _, at := range logs {
		if id, ok := schedule.OfLog(at); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func requestedTimes(r client.RunRequest) schedule.Times {
	return schedule.Times{At: r.At, Every: r.Every, Zone: r.Zone, Missed: r.Missed, Overlap: r.Overlap, On: r.On, Conversation: r.Conversation}
}

// createSchedule makes a schedule of a request, after it has checked the request as if its run began now. The request
// with an id that exists changes nothing.
func (c *opener) createSchedule(ctx context.Context, r client.RunRequest, w schedule.Times) (any, error) {
	if anyone, ok := ctx.Value(anyoneKey{}).(bool); ok && anyone {
		return nil, &client.Error{Code: client.CodeForbidden, Text: "a connection without a credential makes no schedule", Hint: "use the credential of the user in node.json, and name a reply subject"}
	}
	if err := checkSchedulable(c.cfg, r); err != nil {
		return nil, err
	}
	done, err := c.locks.lockRun(ctx, string(schedule.LogOf(r.RunID)))
	if err != nil {
		return nil, err
	}
	defer done()
	s, err := c.schedules.readSchedule(ctx, r.RunID)
	if err != nil {
		return nil, err
	}
	if s.Exists() {
		if err := checkOwnSchedule(ctx, r.RunID, s); err != nil {
			return nil, err
		}
		if err := c.openTrigger(ctx, r.RunID, s.Rule); err != nil { // the request before may have failed between the two
			return nil, err
		}
		return acceptSchedule(r, w, s), nil
	}
	rule, err := schedule.NewRule(w, c.cfg.Now())
	if bad := (*schedule.Problem)(nil); errors.As(err, &bad) {
		return nil, &client.Error{Code: client.CodeBad, Text: bad.Text, Hint: bad.Hint}
	} else if err != nil {
		return nil, err
	}
	id := r.RunID
	r, accepted, err := c.checkScheduled(ctx, r, rule)
	if err != nil {
		return nil, err
	}
	stored := r
	stored.Owner = "" // the schedule has it
	request, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("control: schedule: %w", err)
	}
	if s, err = c.schedules.appendToSchedule(ctx, id, schedule.Scheduled{Request: request, Rule: rule, Owner: r.Owner, Salt: newSalt()}); err != nil {
		return nil, err
	}
	if err := c.openTrigger(ctx, id, rule); err != nil {
		return nil, err
	}
	accepted.RunID, accepted.Schedule, accepted.Conversation = "", id, r.Conversation
	accepted.Next = describeSchedule(id, s).Next
	return accepted, nil
}

// openTrigger has the messages of a schedule's trigger kept from now on. It is harmless to repeat.
func (c *opener) openTrigger(ctx context.Context, id string, rule schedule.Rule) error {
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
func checkSchedulable(cfg *Config, r client.RunRequest) error {
	if !cfg.KeepsSchedules {
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
// What the user's own command may bring only for the moment counts no more then, so it does not count now.
func (c *opener) checkScheduled(ctx context.Context, r client.RunRequest, rule schedule.Rule) (client.RunRequest, client.RunAccepted, error) {
	var none client.RunAccepted
	if err := c.schedules.checkScheduleRoom(ctx); err != nil {
		return r, none, err
	}
	if err := c.admission.checkRoom(ctx); err != nil {
		return r, none, err
	}
	asked := r.Conversation
	r, err := c.keeper.withConversation(ctx, r)
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
	_, accepted, err := c.buildOpened(ctx, tried, asked)
	if refuse.HasCode(err, client.CodeForbidden) {
		known := *toClientError(err)
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

// checkScheduleRoom refuses a schedule if there are as many as there may be. The log of a deleted one
// stays, and does not count.
func (c *scheduleLogs) checkScheduleRoom(ctx context.Context) error {
	ids, err := c.listScheduleIDs(ctx)
	if err != nil || len(ids) < schedulesMax {
		return err
	}
	count := 0
	for _, id := range ids {
		s, err := c.readSchedule(ctx, id)
		if isOutage(ctx, err) {
			return err
		}
		if err != nil || s.Exists() {
			count++
		}
	}
	if count >= schedulesMax {
		return &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("there are %d schedules already", schedulesMax), Hint: "`troupe schedules delete` ends one"}
	}
	return nil
}

// isOutage reports whether an error says nothing about the log that could not be read.
func isOutage(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || bus.IsUnavailable(err))
}

// listSchedules lists the schedules, or shows one. One whose log cannot be read is listed with the reason.
func (c *viewer) listSchedules(ctx context.Context, r schedule.Request) (any, error) {
	if r.ID != "" {
		s, err := c.schedules.findSchedule(ctx, r.ID)
		if err == nil {
			err = checkOwnSchedule(ctx, r.ID, s)
		}
		if err != nil {
			return nil, err
		}
		info := describeSchedule(r.ID, s)
		info.Request = scheduledRequest(s)
		return []client.ScheduleInfo{info}, nil
	}
	ids, err := c.schedules.listScheduleIDs(ctx)
	if err != nil {
		return nil, err
	}
	list := []client.ScheduleInfo{}
	for _, id := range ids {
		s, err := c.schedules.readSchedule(ctx, id)
		if isOutage(ctx, err) {
			return nil, err
		}
		if checkOwnSchedule(ctx, id, cmp.Or(s, &schedule.State{})) != nil {
			continue
		}
		if err != nil {
			list = append(list, client.ScheduleInfo{ID: id, Error: bounds.TruncateText(err.Error(), bounds.ErrorBytesMax)})
		} else if s.Exists() {
			list = append(list, describeSchedule(id, s))
		}
	}
	slices.SortFunc(list, func(a, b client.ScheduleInfo) int {
		const never = "9" // sorts after each time
		return cmp.Or(cmp.Compare(cmp.Or(a.Next, never), cmp.Or(b.Next, never)), strings.Compare(a.ID, b.ID))
	})
	return list, nil
}

// findSchedule reads a schedule that must exist.
func (c *scheduleLogs) findSchedule(ctx context.Context, id string) (*schedule.State, error) {
	missing := &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no schedule %.80q", id), Hint: "`troupe schedules list` shows them"}
	if names.CheckToken(id) != nil || len(id) > schedule.IDBytesMax(names.TokenBytesMax) {
		return nil, missing
	}
	s, err := c.readSchedule(ctx, id)
	if err == nil && !s.Exists() {
		return nil, missing
	}
	return s, err
}

func scheduledRequest(s *schedule.State) *client.RunRequest {
	var r client.RunRequest
	if err := json.Unmarshal(s.Request, &r); err != nil {
		return nil // only another program wrote it
	}
	return &r
}

func formatMS(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

func describeSchedule(id string, s *schedule.State) client.ScheduleInfo {
	info := client.ScheduleInfo{ID: id, Zone: s.Rule.Zone, Missed: s.Rule.Missed, Overlap: s.Rule.Overlap, On: s.Rule.On, Created: formatMS(s.CreatedMS), LastRun: s.LastRun,
		LastDue: formatMS(s.LastRunMS), Fired: s.Fired, MissedCount: s.Missed, Refused: s.Refused, Error: s.Error, Every: s.Rule.Cron}
	if s.Rule.EveryMS > 0 {
		info.Every = (time.Duration(s.Rule.EveryMS) * time.Millisecond).String()
	}
	if s.Rule.On == "" && s.Rule.Cron == "" {
		info.At = formatMS(s.Rule.StartMS)
	}
	if s.Rule.Conversation {
		info.Overlap = ""
	}
	if next, ok := s.Rule.Next(s.LastMS); ok {
		info.Next = formatMS(next)
	}
	if s.Pending != 0 {
		info.Next = formatMS(s.Pending)
	}
	if r := scheduledRequest(s); r != nil {
		info.Title, info.Conversation = runindex.TitleOf(r.Prompt), r.Conversation
	}
	return info
}

// deleteSchedule ends a schedule.
func (c *remover) deleteSchedule(ctx context.Context, id string) (any, error) {
	s, err := c.schedules.findSchedule(ctx, id)
	if err == nil {
		err = checkOwnSchedule(ctx, id, s)
	}
	if err != nil {
		return nil, err
	}
	isTrigger := s.Rule.On != ""
	if s, err = c.schedules.appendToSchedule(ctx, id, schedule.Ended{}); err != nil {
		return nil, err
	}
	if isTrigger { // a scheduler with an older state may open it again, so LookAtSchedule closes it once more, and purges
		return struct{}{}, c.cfg.Triggers.Close(ctx, id)
	}
	return struct{}{}, c.schedules.purgeSchedule(ctx, id, s.Deleted)
}

// purgeSchedule removes the entries of a schedule before a place.
func (c *scheduleLogs) purgeSchedule(ctx context.Context, id string, before uint64) error {
	if before == 0 {
		return nil
	}
	if err := c.cfg.Post.Purge(ctx, schedule.LogOf(id), before); err != nil {
		return fmt.Errorf("control: schedule %s: %w", id, err)
	}
	return nil
}
