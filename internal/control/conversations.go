package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/lane"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

// listConversations lists the conversations, or shows one.
func (c *viewer) listConversations(ctx context.Context, r client.ConversationsRequest) (any, error) {
	if r.Conversation != "" {
		s, err := c.lanes.findLane(ctx, r.Conversation)
		if err == nil {
			err = checkOwnLane(ctx, r.Conversation, s)
		}
		if err != nil {
			return nil, err
		}
		info := describeLane(r.Conversation, s)
		if info.Runs, err = describeRuns(ctx, c.cfg.Runs, s.Runs); err != nil {
			return nil, err
		}
		info.Journal, err = c.lanes.lastJournal(ctx, s)
		return []client.ConversationInfo{info}, err
	}
	logs, err := c.cfg.Post.Addresses(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("control: list conversations: %w", err)
	}
	list := []client.ConversationInfo{}
	for _, at := range logs {
		conversation, ok := at.Conversation()
		if !ok {
			continue
		}
		s, _, err := c.lanes.settledLane(ctx, conversation)
		if err != nil {
			return nil, err
		}
		if checkOwnLane(ctx, conversation, s) != nil {
			continue
		}
		info := describeLane(conversation, s)
		if len(s.Runs) == 0 || r.Busy && info.Active == "" && info.Waiting == 0 {
			continue // it was deleted
		}
		if r.Busy {
			open := slices.DeleteFunc(slices.Clone(s.Runs), func(r lane.Run) bool { return r.Status != lane.Active && r.Status != lane.Waiting })
			if info.Runs, err = describeRuns(ctx, c.cfg.Runs, open); err != nil {
				return nil, err
			}
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b client.ConversationInfo) int { return strings.Compare(b.Changed, a.Changed) })
	if r.Limit > 0 && len(list) > r.Limit {
		list = list[:r.Limit]
	}
	return list, nil
}

func describeLane(conversation string, s *lane.State) client.ConversationInfo {
	info := client.ConversationInfo{Conversation: conversation, Count: len(s.Runs), Waiting: len(s.Queue()), HandedTo: s.Holder}
	if r, ok := s.ActiveRun(); ok {
		info.Active = r.ID
	}
	info.Changed = time.UnixMilli(s.LastChange()).UTC().Format(time.RFC3339)
	return info
}

// describeRuns adds the titles, which the index has.
func describeRuns(ctx context.Context, index *runindex.Index, runs []lane.Run) ([]client.ConversationRun, error) {
	list := make([]client.ConversationRun, len(runs))
	for i, r := range runs {
		list[i].Run = r
		row, ok, err := index.Get(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		if ok {
			list[i].Title = row.Title
		}
	}
	return list, nil
}

// changeLane moves or drops a run that waits. The log of the lane decides whether it still waited.
func (c *laneKeeper) changeLane(ctx context.Context, r client.LaneRequest) (any, error) {
	s, err := c.lanes.findLane(ctx, r.Conversation)
	if err == nil {
		err = checkOwnLane(ctx, r.Conversation, s)
	}
	if err != nil {
		return nil, err
	}
	if err := checkWaiting(s, r, r.RunID); err != nil {
		return nil, err
	}
	var f lane.Fact = lane.Removed{Run: r.RunID}
	switch r.Action {
	case client.LaneDrop:
	case client.LaneMove:
		if r.Before != "" {
			if err := checkWaiting(s, r, r.Before); err != nil {
				return nil, err
			}
		}
		f = lane.Moved{Run: r.RunID, Before: r.Before}
	default:
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("action is %.40q", r.Action), Hint: "use move or drop"}
	}
	if err := runlog.AppendFacts[lane.Fact](ctx, c.cfg.Post, mailbox.LaneOf(r.Conversation), f); err != nil {
		return nil, err
	}
	if _, err := c.advanceLane(ctx, r.Conversation); err != nil {
		return nil, err
	}
	c.cfg.laneKnown(r.Conversation)
	if s, err = c.lanes.readLane(ctx, r.Conversation); err != nil {
		return nil, err
	}
	if now, _ := s.Find(r.RunID); r.Action == client.LaneDrop && now.Status != lane.Dropped && now.BegunMS > 0 {
		return nil, checkWaiting(s, r, r.RunID) // it began before it was dropped
	}
	info := describeLane(r.Conversation, s)
	info.Runs, err = describeRuns(ctx, c.cfg.Runs, s.Runs)
	return info, err
}

// checkWaiting refuses a change of a run that does not wait.
func checkWaiting(s *lane.State, r client.LaneRequest, run string) error {
	switch is, ok := s.Find(run); {
	case !ok:
		return &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("the conversation %s has no run %.80q", r.Conversation, run), Hint: "`troupe lanes " + r.Conversation + "` shows them"}
	case is.Status != lane.Waiting:
		return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%s does not wait: it is %s", run, is.Status), Hint: "`troupe cancel " + run + "` stops a run that has begun"}
	}
	return nil
}

// deleteConversation removes all runs of a conversation, then its lane. If the process dies, the next request removes
// the rest. A message that is posted meanwhile keeps the lane: an entry of the lane itself ends it, if no run waits.
func (c *remover) deleteConversation(ctx context.Context, conversation string) (any, error) {
	if _, err := c.lanes.findLane(ctx, conversation); err != nil {
		return nil, err
	}
	s, ended, err := c.lanes.settledLane(ctx, conversation)
	if err == nil {
		err = checkOwnLane(ctx, conversation, s)
	}
	if err != nil {
		return nil, err
	}
	if r, busy := s.ActiveRun(); busy || len(s.Queue()) > 0 {
		if !busy {
			r, _ = s.FirstWaiting()
		}
		return nil, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the conversation %s has a run that has not ended: %s", conversation, r.ID), Hint: "cancel it first: `troupe cancel " + r.ID + "`"}
	}
	reply := client.DeletedConversation{Conversation: conversation, Runs: []string{}}
	deadline, bounded := ctx.Deadline()
	for _, r := range s.Runs {
		if bounded && time.Until(deadline) < pruneSpare && len(reply.Runs) > 0 {
			reply.More = true
			return reply, nil
		}
		d, err := c.deleteRun(ctx, client.DeleteRequest{RunID: r.ID})
		if err != nil && !refuse.IsAbsent(err) {
			return nil, err
		}
		if err == nil && !d.(client.Deleted).Already {
			reply.Runs = append(reply.Runs, r.ID)
		}
	}
	if err := runlog.AppendFacts[lane.Fact](ctx, c.cfg.Post, mailbox.LaneOf(conversation), append(ended, lane.Deleted{})...); err != nil {
		return nil, err
	}
	if s, err = c.lanes.readLane(ctx, conversation); err != nil {
		return nil, err
	}
	if s.Deleted == 0 {
		return nil, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("a message was posted to the conversation %s while it was deleted", conversation), Hint: "cancel its run, and delete the conversation again"}
	}
	if err := c.cfg.Post.Purge(ctx, mailbox.LaneOf(conversation), s.Deleted); err != nil {
		return nil, fmt.Errorf("control: delete %s: %w", conversation, err)
	}
	return reply, nil
}
