package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// A supervisor cancels its agents. If its log is lost, cannot be read or does
// not name all agents, the control service appends the cancel to the log of each agent
// itself: cancel and delete must work on any run, however damaged.

const (
	noLogLeft = "no log of the run is left"
	superGone = "its supervisor's log is gone"
	superLeft = "its supervisor was given up"
)

// cancelTarget is a run that is to be canceled.
type cancelTarget struct {
	runview.View
	// lost returns why the supervisor cancels no agent; "" if it does.
	lost string
}

// inspectRun views a run that is to be canceled. It refuses a log of a newer form unless the user asks
// for an immediate end: a node of the newer release can stop such a run in order.
func (c *runViews) inspectRun(ctx context.Context, row runindex.Row, now bool) (cancelTarget, error) {
	l, err := c.ViewOne(ctx, row)
	v := cancelTarget{View: l}
	switch s := l.Summary; {
	case refuse.IsNewer(err) && now:
		v.lost = "the log of its supervisor was " + statedir.ErrNewerForm.Error()
	case err != nil:
		return v, err
	case s.Phase == "":
		v.lost = cmp.Or(l.Damage, superGone)
	case s.Phase == supervisor.Over && s.Reason == spec.LogDamaged:
		v.lost = s.Detail
	case s.Phase != supervisor.Over && l.Row.State == client.RunFinished:
		v.lost = superLeft
	}
	return v, nil
}

// cancelFact returns the cancel in the log of an agent; nil if there is none.
func (e *logStatus) cancelFact() *agent.Canceled {
	if e.agent == nil {
		return nil
	}
	return e.agent.State.Cancel
}

// isStopped reports whether an agent has appended its end.
func (e *logStatus) isStopped() bool { return e.closed > 0 || e.agent.State.Phase == agent.Done }

// hasBegun reports whether an agent has its task, or may have had it before its log was
// damaged. A log that holds only a history for a future run is not an agent yet.
func (e *logStatus) hasBegun() bool {
	return e.super == nil && (e.agent.State.Phase != "" || e.reader.Damage != "" || e.reader.Garbage > 0)
}

// isOrphaned reports whether no activation of this program can get through a log.
func (e *logStatus) isOrphaned() bool { return e.newer || e.starts.Unfinished > activation.StartsMax }

// needsCancel reports whether an agent is still live and its log does not have the cancel.
func (e *logStatus) needsCancel(f agent.Canceled) bool {
	if !e.hasBegun() || e.isStopped() {
		return false
	}
	earlier := e.cancelFact()
	return earlier == nil || f.Now && !earlier.Now
}

// cancelLogs appends a cancel to the logs of agents that need it.
func (c *canceler) cancelLogs(ctx context.Context, request string, f agent.Canceled, ends map[mailbox.Address]*logStatus) error {
	of, id := f.Of, cancelID(request, f)
	f.Of = ""
	for _, at := range slices.Sorted(maps.Keys(ends)) {
		if !isCanceled(of, spec.ID(at.Agent())) || !ends[at].needsCancel(f) {
			continue
		}
		if err := c.cfg.Node.Command(ctx, at, id, f.Kind(), f); err != nil {
			return err
		}
	}
	return nil
}

// cancelAgents stops the agents of a run whose supervisor cannot, and ends its row. The
// row is final unless the supervisor comes back and writes another result.
func (c *canceler) cancelAgents(ctx context.Context, v cancelTarget, r client.CancelRequest, f agent.Canceled) (any, error) {
	if err := names.CheckToken(r.Request); err != nil {
		return nil, badRequestID(err)
	}
	ends, err := readLogStatuses(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return nil, err
	}
	if f.Of != "" && ends[agentLog(ends, r.RunID, f.Of)] == nil {
		return nil, refuse.NoAgent(f.Of, r.RunID)
	}
	if len(ends) == 0 {
		v.lost = noLogLeft
	}
	if err := c.cancelLogs(ctx, r.Request, f, ends); err != nil {
		return nil, err
	}
	if v.Row.State != client.RunFinished && (f.Of == "" || f.Of == spec.Root) {
		if err := c.endRow(ctx, v.Row.RunInfo, v.lost+"; its agents were canceled without it"); err != nil {
			return nil, err
		}
	}
	ends = c.awaitEnds(ctx, ends, r, f.Of)
	reply := c.accountLogs(ends, f.Of)
	reply.Text += "; " + v.lost
	return reply, nil
}

// agentLog finds the log of an agent in any pool.
func agentLog(ends map[mailbox.Address]*logStatus, run string, id spec.ID) mailbox.Address {
	for at := range ends {
		if at.Bare() == mailbox.At(run, string(id)) {
			return at
		}
	}
	return ""
}

// awaitEnds waits until the agents have stopped by their own logs, for as long as the
// request says.
func (c *canceler) awaitEnds(ctx context.Context, ends map[mailbox.Address]*logStatus, r client.CancelRequest, of spec.ID) map[mailbox.Address]*logStatus {
	wait := r.Wait()
	ctx, enough := context.WithTimeout(ctx, wait)
	defer enough()
	for pause := cancelLookMin; wait > 0 && len(unstoppedAgents(ends, of)) > 0; pause = min(2*pause, cancelLookMax) {
		select {
		case <-ctx.Done():
			return ends
		case <-time.After(pause):
		}
		if now, err := readLogStatuses(ctx, c.cfg.Post, r.RunID); err == nil { // else the account is of the previous check
			ends = now
		}
	}
	return ends
}

// unstoppedAgents returns the agents that have begun and have not appended that they stopped.
func unstoppedAgents(ends map[mailbox.Address]*logStatus, of spec.ID) []mailbox.Address {
	var list []mailbox.Address
	for _, at := range slices.Sorted(maps.Keys(ends)) {
		if e := ends[at]; e.hasBegun() && !e.isStopped() && !e.isOrphaned() && isCanceled(of, spec.ID(at.Agent())) {
			list = append(list, at)
		}
	}
	return list
}

// accountLogs is account according to the logs of the agents. Agents that ended before the
// cancel do not count.
func (c *canceler) accountLogs(ends map[mailbox.Address]*logStatus, of spec.ID) client.CancelReply {
	r := client.CancelReply{Pending: []client.PendingOn{}}
	on := map[string]int{}
	for at, e := range ends {
		if !e.hasBegun() || !isCanceled(of, spec.ID(at.Agent())) {
			continue
		}
		switch {
		case e.isStopped() && e.cancelFact() == nil:
			continue
		case e.isStopped():
			r.Stopped++
		case e.isOrphaned():
			r.GivenUp++
		default:
			on[e.agent.State.Node]++
		}
		r.Agents++
	}
	c.pendingNodes(&r, on)
	return r
}

// cancelStrays stops agents that the supervisor's log does not name: it lost entries. As long as
// the Summary of the run accounts for all its logs, no log is read.
func (c *canceler) cancelStrays(ctx context.Context, known supervisor.Summary, r client.CancelRequest, f agent.Canceled) (client.CancelReply, error) {
	logs, err := c.cfg.Post.Addresses(ctx, r.RunID)
	if err != nil {
		return client.CancelReply{}, fmt.Errorf("control: cancel %s: %w", r.RunID, err)
	}
	if logs = slices.DeleteFunc(logs, isSupervisor); hasLogsOf(known, logs) {
		return client.CancelReply{}, nil
	}
	s, err := runlog.ReplaySupervisor(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return client.CancelReply{}, err
	}
	isStray := func(at mailbox.Address) bool {
		_, member := s.Member(spec.ID(at.Agent()))
		return !member && !isSupervisor(at)
	}
	if !slices.ContainsFunc(logs, isStray) {
		return client.CancelReply{}, nil
	}
	ends, err := readLogStatuses(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return client.CancelReply{}, err
	}
	maps.DeleteFunc(ends, func(at mailbox.Address, _ *logStatus) bool { return !isStray(at) })
	if err := c.cancelLogs(ctx, r.Request, f, ends); err != nil {
		return client.CancelReply{}, err
	}
	return c.accountLogs(ends, f.Of), nil
}

// hasLogsOf reports whether a Summary accounts for the logs of all agents: it names their agents, or
// all agents of the run have ended, and there are as many logs. It does not name those that ended
// before a cancel.
func hasLogsOf(s supervisor.Summary, logs []mailbox.Address) bool {
	if s.Tally.LiveAgents() == 0 && len(logs) == s.Joined {
		return true
	}
	return !slices.ContainsFunc(logs, func(at mailbox.Address) bool {
		return !slices.ContainsFunc(s.Agents, func(a supervisor.AgentSummary) bool { return string(a.ID) == at.Agent() })
	})
}

func isSupervisor(at mailbox.Address) bool { return at.Agent() == mailbox.Super }

// giveUpSilent marks members as given up whose end the supervisor cannot learn: those whose
// logs are newer than this program, and those that have ended while the supervisor's log
// lost the entry about it. If a newer node activates one of the former, it reads the cancel
// first. Members in a pool without a node stay pending: a node that joins stops them, and
// their run ends in order.
func (c *canceler) giveUpSilent(ctx context.Context, r client.CancelRequest, of spec.ID) error {
	s, err := runlog.ReplaySupervisor(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return err
	}
	ends, err := readLogStatuses(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return err
	}
	super := mailbox.At(r.RunID, mailbox.Super)
	s.Members(func(m supervisor.Member) {
		why := ends[mailbox.At(r.RunID, string(m.ID)).In(m.NodePool)].whySilent()
		if !m.Done && isCanceled(of, m.ID) && why != "" {
			f := supervisor.GivenUp{Agent: m.ID, Why: "canceled: " + why}
			err = errors.Join(err, c.cfg.Node.Command(ctx, super, "cancel_gave_up."+string(m.ID), f.Kind(), f))
		}
	})
	return err
}

// whySilent returns why the supervisor cannot learn that an agent has stopped; "" if it
// may.
func (e *logStatus) whySilent() string {
	switch {
	case e == nil:
		return ""
	case e.newer:
		return "this node cannot stop it: its log was " + statedir.ErrNewerForm.Error()
	case e.isStopped():
		return "its log records its end, and its supervisor's log has lost that"
	}
	return ""
}

// endRow records in the index that a run has ended, if its supervisor cannot.
func (c *canceler) endRow(ctx context.Context, info client.RunInfo, why string) error {
	result := supervisor.State{Phase: supervisor.Over, Run: supervisor.Opened{Run: info.RunID},
		Outcome: spec.Outcome{Reason: spec.LogDamaged, Partial: true, Detail: why}}.Result()
	err := c.cfg.Runs.Change(ctx, info.RunID, func(i *client.RunInfo) {
		if i.RunID == "" {
			*i = info
		}
		if i.State != client.RunFinished {
			now := time.Now()
			if began, err := time.Parse(time.RFC3339, i.Started); err == nil {
				result.DurationMS = max(0, now.Sub(began).Milliseconds())
			}
			runindex.FinishRow(i, result, now)
		}
	})
	if err != nil {
		return err
	}
	deleted, err := runlog.IsDeleted(ctx, c.cfg.Post, info.RunID)
	if err == nil && deleted { // it was deleted meanwhile
		err = c.cfg.Runs.Remove(ctx, info.RunID)
	}
	return err
}

const (
	// stopWait is how long one delete request waits for agents to stop.
	stopWait = 2 * time.Second
	// stopGrace is how long a delete waits for a canceled agent that appends nothing, before
	// it removes the agent's log anyway: the agent's work in progress was aborted.
	stopGrace = 10 * time.Second
	// deleteRequest names the cancel of a delete. It has a dot, which no name of a client has:
	// an agent reads only the first request of a name.
	deleteRequest = "delete.now"
)

// isGraceOver reports whether an agent was canceled with now so long ago that its log may be
// removed. If the logs of a run could not be read since then, the time is unknown.
func (e *logStatus) isGraceOver(now time.Time) bool {
	return e.canceledNow && now.Sub(e.canceledAt) >= stopGrace
}

// stopAgents cancels agents that are still live although their run has ended, before their
// logs are removed: an activation whose log is gone would not read the cancel.
func (c *canceler) stopAgents(ctx context.Context, run string, ends map[mailbox.Address]*logStatus) (map[mailbox.Address]*logStatus, error) {
	f := agent.Canceled{Why: "the run is deleted", Now: true}
	if err := c.cancelLogs(ctx, deleteRequest, f, ends); err != nil {
		return nil, err
	}
	ends = c.awaitEnds(ctx, ends, client.CancelRequest{RunID: run, WaitMS: stopWait.Milliseconds()}, "")
	var names []string
	for _, at := range unstoppedAgents(ends, "") {
		p := c.cfg.Cluster.pendingOn(ends[at].agent.State.Node, 1)
		if !ends[at].isGraceOver(time.Now()) || p.Unreachable && p.LeaseMS > 0 {
			names = append(names, fmt.Sprintf("%s on %s", at.Agent(), cmp.Or(p.Node, "no node")))
		}
	}
	if len(names) > 0 {
		return nil, &client.Error{Code: client.CodeUnavailable, Text: fmt.Sprintf("%s has ended, but canceled agents have not confirmed that they stopped: %s", run, strings.Join(names, ", ")),
			Hint: fmt.Sprintf("try again: after %v their logs are removed in any case", stopGrace)}
	}
	return ends, nil
}
