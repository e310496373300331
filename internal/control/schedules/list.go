package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/schedule"
)

// List lists the schedules, or shows one. One whose log cannot be read is listed with the reason.
func (c *Registry) List(ctx context.Context, r schedule.Request) ([]client.ScheduleInfo, error) {
	if r.ID != "" {
		s, err := c.logs.find(ctx, r.ID)
		if err == nil {
			err = c.cfg.CheckOwner(ctx, r.ID, s.Owner)
		}
		if err != nil {
			return nil, err
		}
		info := describe(r.ID, s)
		info.Request = scheduledRequest(s)
		return []client.ScheduleInfo{info}, nil
	}
	ids, err := c.logs.listIDs(ctx)
	if err != nil {
		return nil, err
	}
	list := []client.ScheduleInfo{}
	for _, id := range ids {
		s, err := c.logs.read(ctx, id)
		if isOutage(ctx, err) {
			return nil, err
		}
		if c.cfg.CheckOwner(ctx, id, cmp.Or(s, &schedule.State{}).Owner) != nil {
			continue
		}
		if err != nil {
			list = append(list, client.ScheduleInfo{ID: id, Error: bounds.TruncateText(err.Error(), bounds.ErrorBytesMax)})
		} else if s.Exists() {
			list = append(list, describe(id, s))
		}
	}
	slices.SortFunc(list, func(a, b client.ScheduleInfo) int {
		const never = "9" // sorts after each time
		return cmp.Or(cmp.Compare(cmp.Or(a.Next, never), cmp.Or(b.Next, never)), strings.Compare(a.ID, b.ID))
	})
	return list, nil
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

func describe(id string, s *schedule.State) client.ScheduleInfo {
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

// describeExisting answers a request whose schedule exists, and names where it differs from the one with which that was made.
func describeExisting(r client.RunRequest, s *schedule.State, differences func(r, made client.RunRequest) []string) client.RunAccepted {
	info := describe(r.RunID, s)
	accepted := client.RunAccepted{Schedule: r.RunID, Next: info.Next, Conversation: info.Conversation, Why: "the schedule exists already", Existed: true}
	if made := scheduledRequest(s); made != nil {
		accepted.Differs = differences(r, *made)
	}
	if rule, err := schedule.NewRule(TimesOf(r), time.UnixMilli(s.CreatedMS)); err != nil || !isSameRule(rule, s.Rule) {
		accepted.Differs = append(accepted.Differs, "times")
	}
	if len(accepted.Differs) > 0 {
		accepted.Why += " and differs in: " + strings.Join(accepted.Differs, ", ")
	}
	return accepted
}

// isSameRule reports whether two rules have the same due times. Some begin at the moment of the request, which its schedule
// knows to a minute at best.
func isSameRule(a, b schedule.Rule) bool {
	begin := time.Duration(a.StartMS-b.StartMS) * time.Millisecond
	a.StartMS = b.StartMS
	return a == b && begin.Abs() <= time.Minute
}
