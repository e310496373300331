package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	// Whether the agents have stopped is checked again after cancelLookMin, then after twice as
	// long, up to cancelLookMax.
	cancelLookMin = 20 * time.Millisecond
	cancelLookMax = 500 * time.Millisecond
	// directAfter is the time after which the control service itself cancels agents whose logs have
	// no cancel. The supervisor may have no activation, or not know them. Its log does not tell: an
	// entry in it reaches no agent until an activation has read it and sent the messages.
	directAfter = 2 * time.Second
	// gaveUpWait is how long the supervisor may take to read that agents were given up.
	gaveUpWait = time.Second
)

// canceler stops agents: through the supervisor, or without it if its log is lost or it does not reach them.
type canceler struct {
	cfg       *Config
	lookup    *lookup
	views     *runViews
	commander *commander
}

// cancelRun appends the request and then waits, for a bounded time, until the agents have
// stopped. The reply says which agents have stopped. An error after the append would tell
// the client that the cancel was not requested, so cancelRun returns the current account
// instead.
func (c *canceler) cancelRun(ctx context.Context, r client.CancelRequest) (any, error) {
	if err := checkWhy(r.Why); err != nil {
		return nil, err
	}
	f := agent.Canceled{Why: r.Why, Now: r.Now, Of: spec.ID(r.Agent), By: namedBy(r.By)}
	row, err := c.lookup.findRun(ctx, r.RunID)
	if err != nil {
		return nil, err
	}
	v, err := c.views.inspectRun(ctx, row, r.Now)
	if err != nil {
		return nil, err
	}
	if v.lost != "" {
		return c.cancelAgents(ctx, v, r, f)
	}
	if !isWhole(f.Of) { // the account of a part needs every agent
		if v.View, err = c.views.ViewFully(ctx, v.Row); err != nil {
			return nil, err
		}
	}
	if !isCancelLogged(v.Summary, f) {
		if err := names.CheckToken(r.Request); err != nil {
			return nil, badRequestID(err)
		}
		if _, err := c.commander.appendToViewed(ctx, v.View, cancelID(r.Request, f), "", f.Of, f.Kind(), f); err != nil {
			return nil, err
		}
	}
	return c.awaitStops(ctx, v.View, r, f), nil
}

// whyBytesMax is the longest reason of a cancel. It becomes part of the result, of events, and of the row of the index.
const whyBytesMax = 1 << 10

func checkWhy(why string) error {
	if len(why) <= whyBytesMax {
		return nil
	}
	return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("why has %d bytes, more than %d", len(why), whyBytesMax), Hint: "give a shorter reason"}
}

// isCancelLogged reports whether the log has a cancel already: then it needs no second entry.
func isCancelLogged(s supervisor.Summary, f agent.Canceled) bool {
	return s.Canceled && (s.CanceledNow || !f.Now)
}

// awaitStops waits until the agents have stopped, for as long as the request says. The
// control service cancels the agents that the supervisor does not reach. awaitStops logs its
// errors: the cancel is in the log already.
func (c *canceler) awaitStops(ctx context.Context, l runview.View, r client.CancelRequest, f agent.Canceled) client.CancelReply {
	warn := func(err error) {
		if err != nil {
			c.cfg.logger().Warn("agents were not reached by a cancel", "run", r.RunID, "error", err)
		}
	}
	wait := r.Wait()
	if l = c.awaitMembers(ctx, l, r, min(wait, directAfter)); wait > directAfter && !areStopped(l, f.Of) {
		ends, err := readLogStatuses(ctx, c.cfg.Post, r.RunID)
		if err == nil {
			err = c.cancelLogs(ctx, r.Request, f, ends)
		}
		warn(err)
	}
	l = c.awaitMembers(ctx, l, r, wait-directAfter)
	strays, err := c.cancelStrays(ctx, l.Summary, r, f)
	warn(err)
	if wait > 0 && r.Now && !areStopped(l, f.Of) {
		warn(c.giveUpSilent(ctx, r, f.Of))
		l = c.awaitMembers(ctx, l, r, gaveUpWait)
	}
	reply := c.accountMembers(l.Summary, f.Of)
	if strays.Agents > 0 {
		reply.Agents, reply.Stopped, reply.GivenUp = reply.Agents+strays.Agents, reply.Stopped+strays.Stopped, reply.GivenUp+strays.GivenUp
		reply.Pending = append(reply.Pending, strays.Pending...)
		reply.Text = accountText(reply)
	}
	return reply
}

// awaitMembers waits until the supervisor knows that the agents have stopped. It looks at the row
// of the run, which needs to name all agents only if some of them are canceled.
func (c *canceler) awaitMembers(ctx context.Context, l runview.View, r client.CancelRequest, wait time.Duration) runview.View {
	of, lookAgain := spec.ID(r.Agent), c.views.ViewOne
	if !isWhole(of) {
		lookAgain = c.views.ViewFully
	}
	ctx, enough := context.WithTimeout(ctx, wait)
	defer enough()
	for pause := cancelLookMin; wait > 0 && !areStopped(l, of); pause = min(2*pause, cancelLookMax) {
		select {
		case <-ctx.Done():
			return l
		case <-time.After(pause):
		}
		row, ok, err := c.cfg.Runs.Get(ctx, r.RunID)
		if err != nil || !ok {
			row = l.Row
		}
		if now, err := lookAgain(ctx, row); err == nil {
			l = now
		}
	}
	return l
}

// isCanceled reports whether a cancel of an agent includes a member: the agent and all
// below it; for the root, all members.
func isCanceled(of, id spec.ID) bool {
	return isWhole(of) || id == of || id.IsBelow(of)
}

// isWhole reports whether a cancel of an agent is one of the whole run.
func isWhole(of spec.ID) bool { return of == "" || of == spec.Root }

// areStopped reports whether the agents of a cancel have stopped.
func areStopped(l runview.View, of spec.ID) bool {
	t, ok := l.Summary.TallyOf(of)
	return ok && t.LiveAgents() == 0 || l.Summary.Phase == supervisor.Over
}

// accountMembers counts the agents that have stopped, and those that have not, by node.
func (c *canceler) accountMembers(s supervisor.Summary, of spec.ID) client.CancelReply {
	t, _ := s.TallyOf(of)
	pending := t.LiveAgents()
	r := client.CancelReply{Pending: []client.PendingOn{}, GivenUp: t.Silent, Stopped: t.Stopped}
	if s.Canceled { // then all live members were told
		r.Stopped = max(0, s.CancelTargets-pending-r.GivenUp)
	}
	r.Agents = r.Stopped + r.GivenUp + pending
	c.pendingNodes(&r, t.Live)
	return r
}

// pendingNodes adds the nodes with agents that have not stopped, and completes the reply.
func (c *canceler) pendingNodes(r *client.CancelReply, on map[string]int) {
	for node, agents := range on {
		r.Pending = append(r.Pending, c.cfg.Cluster.pendingOn(node, agents))
	}
	slices.SortFunc(r.Pending, func(a, b client.PendingOn) int { return strings.Compare(a.Node, b.Node) })
	r.Text = accountText(*r)
}

// pendingOn describes a node with agents that have not stopped.
func (c *Cluster) pendingOn(node string, agents int) client.PendingOn {
	p := client.PendingOn{Node: node, Agents: agents}
	if c == nil || node == "" {
		return p
	}
	ttl := c.TTL
	listed := false
	for _, n := range c.Nodes() {
		if n.Name == node { // two nodes may have one name: the silent one counts
			listed, p.HeardMS = true, max(p.HeardMS, n.HeardMS)
		}
	}
	if !listed {
		p.HeardMS = ttl.Milliseconds()
	}
	p.Unreachable = time.Duration(p.HeardMS)*time.Millisecond > ttl/unreachableParts
	p.LeaseMS = max(0, ttl.Milliseconds()-p.HeardMS)
	return p
}

// unreachableParts: a node renews its lease four times in a TTL. A node that has been
// silent for half a TTL has missed a renewal.
const unreachableParts = 2

func accountText(r client.CancelReply) string {
	if r.Agents == 0 {
		return "nothing was left to stop"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d stopped", r.Stopped, r.Agents)
	if r.GivenUp > 0 {
		fmt.Fprintf(&b, ", %d given up", r.GivenUp)
	}
	for _, p := range r.Pending {
		switch {
		case p.Node == "":
			fmt.Fprintf(&b, "; %d not yet, taken up by no node", p.Agents)
		case p.Unreachable && p.LeaseMS == 0:
			fmt.Fprintf(&b, "; %d unreachable on %s, whose lease has ended", p.Agents, p.Node)
		case p.Unreachable:
			fmt.Fprintf(&b, "; %d unreachable on %s, which was last heard of %.1f s ago and whose lease ends in %.1f s", p.Agents, p.Node,
				float64(p.HeardMS)/1000, float64(p.LeaseMS)/1000)
		default:
			fmt.Fprintf(&b, "; %d not yet on %s", p.Agents, p.Node)
		}
	}
	return b.String()
}
