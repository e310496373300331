package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/lane"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// laneLogs reads the lanes of conversations, and what the logs of their runs say about them.
type laneLogs struct {
	cfg    *Config
	lookup *lookup
	owners *ownerCheck
	views  *runViews
}

// findLane reads the lane of a conversation that must exist.
func (c *laneLogs) findLane(ctx context.Context, conversation string) (*lane.State, error) {
	missing := &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no conversation %.80q", conversation), Hint: "`troupe conversations list` shows them"}
	if names.CheckToken(conversation) != nil || len(conversation) > conversationBytesMax {
		return nil, missing
	}
	s, _, err := c.settledLane(ctx, conversation)
	if err == nil && len(s.Runs) == 0 {
		err = missing
	}
	return s, err
}

// settledLane reads a lane with the ends of its runs that no node has recorded in it yet: the process of a run may have
// ended with the run. ended are the facts that the log of the lane lacks.
func (c *laneLogs) settledLane(ctx context.Context, conversation string) (s *lane.State, ended []lane.Fact, err error) {
	if s, err = c.readLane(ctx, conversation); err != nil {
		return nil, nil, err
	}
	for _, r := range slices.Clone(s.Runs) {
		if r.Status == lane.Ended {
			continue
		}
		is, err := c.standingOf(ctx, r.ID)
		if err != nil {
			return nil, nil, err
		}
		if is.Phase == lane.Finished || is.Phase == lane.Missing {
			over := is.Over(r.ID)
			s.Apply(lane.Entry{At: is.EndedMS, Fact: over})
			ended = append(ended, over)
		}
	}
	return s, ended, nil
}

// lastJournal is the run journal of the newest run that left one.
func (c *laneLogs) lastJournal(ctx context.Context, s *lane.State) (string, error) {
	_, t, _, err := c.newestHistory(ctx, s)
	return t.past.Journal, err
}

// laneOwner returns the owner of a conversation, which may be a run that began without a lane.
func (c *laneLogs) laneOwner(ctx context.Context, conversation string, s *lane.State) (owner string, err error) {
	if len(s.Runs) > 0 {
		return s.Owner, nil
	}
	owner, _, err = c.owners.ownerOf(ctx, conversation)
	return owner, err
}

// readLane reads the lane of a conversation.
func (c *laneLogs) readLane(ctx context.Context, conversation string) (*lane.State, error) {
	s := &lane.State{}
	err := runlog.ReadFacts(ctx, c.cfg.Post, mailbox.LaneOf(conversation), func(m mailbox.Message, item mailbox.Item) {
		f, ok, err := lane.Decode(item.Kind, func(into any) error { return mailbox.Unmarshal(item.Body, into) })
		if ok && err == nil {
			s.Apply(lane.Entry{Place: m.Place, At: m.At, Fact: f})
		}
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// isRunWithoutLane reports whether a conversation is named after a run that began without one: the conversation
// then continues that run, if it has the same owner.
func (c *laneLogs) isRunWithoutLane(ctx context.Context, conversation, owner string) (bool, error) {
	row, err := c.lookup.findRun(ctx, conversation)
	if refuse.IsAbsent(err) {
		return false, nil
	}
	if has, _, ownerErr := c.owners.ownerOf(ctx, conversation); err == nil && (ownerErr != nil || has != owner) {
		return false, ownerErr
	}
	if err != nil {
		return false, err
	}
	own, err := c.conversationOf(ctx, row)
	return err == nil && own == "", err
}

// conversationOf returns the conversation of a run; "" if it has none. A row that was written by another process than
// the one that opened the run may not name it: then the log of the run does.
func (c *laneLogs) conversationOf(ctx context.Context, row runindex.Row) (string, error) {
	if row.Conversation != "" {
		return row.Conversation, nil
	}
	state, err := runlog.ReplaySupervisor(ctx, c.cfg.Post, row.RunID)
	if err != nil || !state.Run.InLane {
		return "", err
	}
	return state.Run.Conversation, nil
}

// standingOf says how far a run is, by its own log.
func (c *laneLogs) standingOf(ctx context.Context, run string) (lane.Standing, error) {
	row, err := c.lookup.findRun(ctx, run)
	if refuse.IsAbsent(err) {
		return lane.Standing{Phase: lane.Missing}, nil
	}
	if err != nil {
		return lane.Standing{}, err
	}
	view, err := c.views.ViewOne(ctx, row)
	if err != nil {
		return lane.Standing{}, err
	}
	st := lane.Standing{Phase: lane.Live, Reason: view.Summary.Reason, History: view.Summary.Joined > 0}
	st.Root = view.Summary.Root
	if h := view.Summary.HandedTo; h != nil {
		st.HandedTo, st.Holder = h.Agent, h.Name
	}
	switch {
	case view.State() == client.RunFinished:
		st.Phase = lane.Finished
		if ended, err := time.Parse(time.RFC3339, row.Ended); err == nil {
			st.EndedMS = ended.UnixMilli()
		}
		if st.Reason == "" && row.Result != nil {
			st.Reason = row.Result.Reason
		}
	case view.Summary.Phase == supervisor.Queued:
		st.Phase = lane.Unbegun
	case view.Summary.Phase == "": // a row without a log
		st.Phase = lane.Missing
	}
	return st, nil
}

// newestHistory reads the newest history of a conversation that there still is. Where a run was deleted, the run
// before it has the history up to there.
func (c *laneLogs) newestHistory(ctx context.Context, s *lane.State) (of lane.Run, t logHistory, found bool, err error) {
	for _, r := range s.Histories() {
		// one that never began has no log
		for _, id := range slices.Compact([]spec.ID{cmp.Or(r.HandedTo, spec.Root), spec.Root}) {
			at, err := c.views.agentAddress(ctx, r.ID, id)
			if err == nil {
				t, err = readHistory(ctx, c.cfg.Post, at, -1, 0)
			}
			if !refuse.IsAbsent(err) {
				return r, t, err == nil, err
			}
		}
	}
	return lane.Run{}, logHistory{}, false, nil
}

// resolveConversation returns the conversation that an id means, and its lane: an id of a run that belongs to another
// conversation means that one. A conversation is new if neither a lane nor a run has its id.
func (c *laneLogs) resolveConversation(ctx context.Context, id string) (means string, s *lane.State, isNew bool, err error) {
	if err := names.CheckToken(id); err != nil || len(id) > conversationBytesMax {
		return "", nil, false, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("conversation is %.80q", id), Hint: fmt.Sprintf("use at most %d of a-z, 0-9, - and _", conversationBytesMax)}
	}
	s, err = c.readLane(ctx, id)
	if err != nil || len(s.Runs) > 0 {
		return id, s, false, err
	}
	row, err := c.lookup.findRun(ctx, id)
	if refuse.IsAbsent(err) {
		return id, s, true, nil
	}
	own := ""
	if err == nil {
		own, err = c.conversationOf(ctx, row)
	}
	if err != nil || own == "" || own == id {
		return id, s, false, err
	}
	s, err = c.readLane(ctx, own)
	return own, s, false, err
}
