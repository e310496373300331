package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/lane"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// A conversation is a lane: a log of its own that orders the runs (internal/lane). A request opens its run first, and
// then adds it to the lane. Whichever node learns that a lane may go on advances it: the node that answers the
// request, the node on which a run of the conversation ended, or one that takes up unfinished runs. If a process dies
// in between, the run waits in its own log, and the node that activates it adds it to the lane.

// laneKeeper adds runs to lanes and advances lanes.
type laneKeeper struct {
	cfg       *Config
	locks     *runLocks
	owners    *ownerCheck
	lanes     *laneLogs
	histories *histories
	me        string // tells this process from others that advance the same lane
}

func newLaneKeeper(p *parts) *laneKeeper {
	return &laneKeeper{p.cfg, p.locks, p.owners, p.lanes, p.histories, client.NewID()}
}

const (
	// laneStepsMax bounds what one visit of a lane does.
	laneStepsMax = 4 * lane.QueueMax
	// joinAttemptsMax is how often a run is added to a lane that is deleted meanwhile.
	joinAttemptsMax = 8
	// adoptedPause is how often the end of a run that began without a lane is looked for.
	adoptedPause = time.Second
)

// joinLane adds an opened run to the lane of its conversation, unless it is there. It reads the lane after each
// append: a deletion of the conversation that came between removes the run again. A run whose conversation belongs to
// another owner can never begin, so it ends.
func (c *laneKeeper) joinLane(ctx context.Context, conversation, run string) error {
	owner, _, err := c.owners.ownerOf(ctx, run)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		s, err := c.lanes.readLane(ctx, conversation)
		if err != nil {
			return err
		}
		if _, joined := s.Find(run); joined {
			return nil
		}
		if len(s.Runs) > 0 && s.Owner != owner { // two owners began it at the same moment
			if err := c.dropFromLane(ctx, run, "its conversation belongs to another owner"); err != nil {
				return err
			}
			return notOwner("conversation", conversation, owner)
		}
		if attempt == joinAttemptsMax {
			return fmt.Errorf("control: %s was not added to the lane of %s", run, conversation)
		}
		facts := []lane.Fact{lane.Enqueued{Run: run, Owner: owner}}
		if len(s.Runs) == 0 && conversation != run {
			adopted, err := c.lanes.isRunWithoutLane(ctx, conversation, owner)
			if err != nil {
				return err
			}
			if adopted {
				facts = append([]lane.Fact{lane.Adopted{Run: conversation, Owner: owner}}, facts...)
			}
		}
		if err := runlog.AppendFacts[lane.Fact](ctx, c.cfg.Post, mailbox.LaneOf(conversation), facts...); err != nil {
			return err
		}
	}
}

// enterLane adds an opened run to the lane of its conversation and advances the lane. The runs before it continue, if
// a node had left them.
func (c *laneKeeper) enterLane(ctx context.Context, conversation string, accepted client.RunAccepted) (client.RunAccepted, error) {
	if err := c.joinLane(ctx, conversation, accepted.RunID); err != nil {
		return accepted, err
	}
	if _, err := c.advanceLane(ctx, conversation); err != nil {
		return accepted, err
	}
	s, err := c.lanes.readLane(ctx, conversation)
	if err != nil {
		return accepted, err
	}
	accepted.Conversation = conversation
	for _, r := range s.Runs {
		if r.ID == accepted.RunID {
			break
		}
		if r.Status != lane.Active && r.Status != lane.Waiting {
			continue
		}
		accepted.Ahead++
		if err := c.cfg.Node.Resume(ctx, r.ID); err != nil {
			return accepted, err
		}
	}
	if accepted.Ahead > 0 {
		accepted.Notes = append(accepted.Notes, waitingNote(accepted.Ahead, conversation))
		c.cfg.laneKnown(conversation)
		return accepted, nil
	}
	accepted.Continues = continuedRun(accepted.RunID, s.Histories())
	return accepted, nil
}

// continuedRun returns the run whose history a run continues; "": none. The run itself may be among the
// histories: it may have ended since.
func continuedRun(run string, histories []lane.Run) string {
	i := slices.IndexFunc(histories, func(r lane.Run) bool { return r.ID != run })
	if i < 0 {
		return ""
	}
	return histories[i].ID
}

// advanceLane performs the due steps of a lane: it records ends, begins the next run and starts it. again is when the
// lane must be visited once more; 0: not needed, the end of a run or a message brings a node back.
func (c *laneKeeper) advanceLane(ctx context.Context, conversation string) (again time.Duration, err error) {
	done, err := c.locks.lockRun(ctx, string(mailbox.LaneOf(conversation)))
	if err != nil {
		return 0, err
	}
	defer done()
	for range laneStepsMax {
		s, err := c.lanes.readLane(ctx, conversation)
		if err != nil {
			return 0, err
		}
		act, err := s.Next(c.me, time.Now().UnixMilli(), func(run string) (lane.Standing, error) { return c.lanes.standingOf(ctx, run) })
		if err != nil {
			return 0, err
		}
		switch act := act.(type) {
		case lane.Append:
			if err := runlog.AppendFacts[lane.Fact](ctx, c.cfg.Post, mailbox.LaneOf(conversation), act.Fact); err != nil {
				return 0, err
			}
		case lane.Start:
			return 0, c.startInLane(ctx, conversation, s, act.Run)
		case lane.Cancel:
			return 0, c.dropFromLane(ctx, act.Run, "it was taken out of the queue of its conversation")
		case lane.LookAgain:
			return time.Duration(act.AfterMS) * time.Millisecond, nil
		case lane.Rest:
			if r, ok := s.ActiveRun(); ok && r.By == "" {
				return adoptedPause, nil // nothing in its log names the lane
			}
			return 0, nil
		}
	}
	return laneRetryMin, nil
}

// laneDropRequest and laneStartRequest name the requests of a lane to its runs. They have a dot, which no request id of a
// client has: see deleteRequest.
const (
	laneDropRequest  = "lane.drop"
	laneStartRequest = "lane.start"
)

// dropFromLane ends a run that waits for its turn.
func (c *laneKeeper) dropFromLane(ctx context.Context, run, why string) error {
	f := agent.Canceled{Why: why}
	return c.cfg.Node.Command(ctx, mailbox.At(run, mailbox.Super), laneDropRequest, f.Kind(), f)
}

// startInLane gives a run the history of its conversation and appends the entry that begins it. A second node that
// does the same appends the same requests, which count once.
func (c *laneKeeper) startInLane(ctx context.Context, conversation string, s *lane.State, run string) error {
	super := mailbox.At(run, mailbox.Super)
	state, err := runlog.ReplaySupervisor(ctx, c.cfg.Post, run)
	if err != nil {
		return err
	}
	if state.Phase != supervisor.Queued {
		return nil
	}
	f := supervisor.LaneStarted{}
	root := mailbox.At(run, string(spec.Root)).In(state.Run.RootPlace())
	f.Past, err = c.continueHistory(ctx, conversation, s, root)
	if refuse.IsNewer(err) { // a node of the newer release reads that history
		return err
	}
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code != client.CodeUnavailable {
		// The history cannot be used, now or later: the run fails and does not block the lane.
		f.Failed, f.Reason = refused.Text, spec.LogDamaged
	} else if err != nil {
		return err
	}
	return c.cfg.Node.Command(ctx, super, laneStartRequest, f.Kind(), f)
}

// continueHistory copies the newest history of a conversation to the root of the next run.
func (c *laneKeeper) continueHistory(ctx context.Context, conversation string, s *lane.State, root mailbox.Address) (*spec.HistoryOrigin, error) {
	last, t, found, err := c.lanes.newestHistory(ctx, s)
	if err != nil || !found {
		return nil, err
	}
	t.past, _ = t.past.Latest()
	origin, err := c.histories.copyTranscript(ctx, last.ID, "", t, root)
	if origin != nil {
		origin.Conversation, origin.Reason = conversation, last.Reason
	}
	return origin, err
}

// withConversation checks the conversation of a request before its run is opened. It returns the request with the
// conversation that it means, and the owner of that, whom the request of an operator must name.
func (c *laneKeeper) withConversation(ctx context.Context, r client.RunRequest) (client.RunRequest, error) {
	if r.Conversation == "" {
		return r, nil
	}
	owner := ""
	id, s, isNew, err := c.lanes.resolveConversation(ctx, r.Conversation)
	if err == nil && !isNew {
		owner, err = c.lanes.laneOwner(ctx, id, s)
	}
	switch {
	case err != nil:
		return r, err
	case isNew:
		owner = r.Owner
	case owner != r.Owner && requestOwner(ctx) == "":
		return r, notNamedOwner(id, owner, r.Owner)
	case owner != r.Owner:
		return r, notOwner("conversation", r.Conversation, r.Owner) // which is not the id that it means
	case len(s.Queue()) >= lane.QueueMax:
		return r, &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("%d messages of the conversation %s wait already", lane.QueueMax, id), Hint: "`troupe lanes " + id + "` shows them; send the next when some have ended"}
	case !isNew && (r.Fork != "" || r.History != nil):
		return r, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("the conversation %s has a history already", id), Hint: "leave fork and history out, or begin another conversation"}
	}
	r.Conversation, r.Owner = id, owner
	return r, nil
}

// conversationBytesMax is the longest id of a conversation.
var conversationBytesMax = names.TokenBytesMax - len(mailbox.LaneOf("").Run())

func waitingNote(ahead int, conversation string) string {
	if ahead == 1 {
		return fmt.Sprintf("the run waits: 1 earlier run of the conversation %s has not ended", conversation)
	}
	return fmt.Sprintf("the run waits: %d earlier runs of the conversation %s have not ended", ahead, conversation)
}
