package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	// The logs are looked at again after cancelLookMin, then twice as long, up to
	// cancelLookMax: a look reads the supervisor's log.
	cancelLookMin = 20 * time.Millisecond
	cancelLookMax = 500 * time.Millisecond
)

// cancel appends the request and then waits, for a bounded time, until the agents have
// stopped. The reply says who has. An error after the append would tell the client that
// nothing was asked, so the account as it stands is returned instead.
func (c *Control) cancel(ctx context.Context, r client.CancelRequest) (any, error) {
	f := agent.Canceled{Why: r.Why, Now: r.Now, Of: agent.ID(r.Agent)}
	if s, err := Fold(ctx, c.cfg.Post, r.RunID); err == nil && isAsked(s, f) {
		return c.awaitStops(ctx, s, r)
	}
	if _, err := c.command(ctx, r.RunID, r.Request, "", f.Of, f.Kind(), f); err != nil {
		return nil, err
	}
	s, err := Fold(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return nil, err
	}
	return c.awaitStops(ctx, s, r)
}

// isAsked reports whether a cancel is in the log already: then it needs no second entry.
func isAsked(s supervisor.State, f agent.Canceled) bool {
	return s.Cancel != nil && (s.Cancel.Now || !f.Now)
}

// awaitStops waits until the agents have stopped, for as long as the request says.
func (c *Control) awaitStops(ctx context.Context, s supervisor.State, r client.CancelRequest) (client.CancelReply, error) {
	of, wait := agent.ID(r.Agent), r.Wait()
	ctx, enough := context.WithTimeout(ctx, wait)
	defer enough()
	for pause := cancelLookMin; wait > 0 && !allStopped(s, of); pause = min(2*pause, cancelLookMax) {
		select {
		case <-ctx.Done():
			return c.account(s, of), nil
		case <-time.After(pause):
		}
		if now, err := Fold(ctx, c.cfg.Post, r.RunID); err == nil {
			s = now
		}
	}
	return c.account(s, of), nil
}

// isCanceled reports whether a cancel of an agent is for a member: the agent and all
// below it, of the root all members.
func isCanceled(of, id agent.ID) bool {
	return of == "" || of == agent.Root || id == of || strings.HasPrefix(string(id), string(of)+"-")
}

func allStopped(s supervisor.State, of agent.ID) bool {
	all := true
	s.Members(func(m supervisor.Member) { all = all && (m.Done || !isCanceled(of, m.ID)) })
	return all || s.Phase == supervisor.Over
}

// account says who has stopped, and who has not and where.
func (c *Control) account(s supervisor.State, of agent.ID) client.CancelReply {
	r := client.CancelReply{Pending: []client.PendingOn{}}
	on := map[string]int{}
	s.Members(func(m supervisor.Member) {
		switch {
		case !isCanceled(of, m.ID):
		case !m.Done:
			on[m.Node]++
		case m.Silent:
			r.GivenUp++
		case m.Stopping:
			r.Stopped++
		}
	})
	pending := 0
	for node, agents := range on {
		pending += agents
		r.Pending = append(r.Pending, c.pendingOn(node, agents))
	}
	if s.Cancel != nil { // then all that lived were told
		r.Stopped = max(0, s.Told-pending-r.GivenUp)
	}
	r.Agents = r.Stopped + r.GivenUp + pending
	slices.SortFunc(r.Pending, func(a, b client.PendingOn) int { return strings.Compare(a.Node, b.Node) })
	r.Text = accountText(r)
	return r
}

// pendingOn says what is known of a node with agents that have not stopped.
func (c *Control) pendingOn(node string, agents int) client.PendingOn {
	p := client.PendingOn{Node: node, Agents: agents}
	if c.cfg.Cluster == nil || node == "" {
		return p
	}
	ttl := c.cfg.Cluster.TTL
	listed := false
	for _, n := range c.cfg.Cluster.Nodes() {
		if n.Name == node { // two nodes may have one name: the one that is silent counts
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

// unreachableParts: a node renews its lease four times in a TTL. One that was not heard
// of for half of it has missed a renewal.
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
