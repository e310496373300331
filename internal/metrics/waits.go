package metrics

import (
	"slices"
	"time"

	"github.com/troupe-run/troupe/internal/toolname"
)

// Names of the tools of MCP servers: mcp__SERVER__TOOL. One of them reads resources.
const (
	mcpPrefix       = toolname.MCPPrefix
	mcpReadResource = "__read_resource"
	methodCall      = "tools/call"
	methodRead      = "resources/read"
)

// ObserveMCPRequest counts a request to the MCP server of the node. tool is empty if the request calls none.
func (r *Recorder) ObserveMCPRequest(method, tool string, took time.Duration, failed bool) {
	r.mcpServerDuration.WithLabelValues(r.labels.value(labelMCPMethod, method), r.labels.value(labelTool, tool), errorIf(failed)).Observe(took.Seconds())
}

// ObserveAppend counts an append to a log.
func (r *Recorder) ObserveAppend(took time.Duration, failed bool) {
	r.logAppends.WithLabelValues(outcomeOf(failed)).Observe(took.Seconds())
}

// pendingDelegations are delegations whose child has not started, by the child's address: when it was asked for. Beyond
// trackedAgentMax the oldest is forgotten: it is of a run that this node reads no further.
type pendingDelegations struct {
	asked map[string]time.Time
	order []string // oldest first; it may name children that asked has no more
}

func (p *pendingDelegations) add(child string, at time.Time) {
	if _, known := p.asked[child]; !known {
		p.order = append(p.order, child)
	}
	p.asked[child] = at
	for len(p.asked) > trackedAgentMax {
		delete(p.asked, p.order[0])
		p.order = p.order[1:]
	}
	if len(p.order) > 2*trackedAgentMax { // most of them have started
		p.order = slices.DeleteFunc(p.order, func(child string) bool { _, waits := p.asked[child]; return !waits })
	}
}

// take removes a child, and returns when it was asked for.
func (p *pendingDelegations) take(child string) (at time.Time, ok bool) {
	at, ok = p.asked[child]
	delete(p.asked, child)
	return at, ok
}

// noteDelegation notes that a child was asked for.
func (r *Recorder) noteDelegation(child string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pendingDelegations.add(child, at)
}

// forgetDelegation is for a child that started elsewhere, or never.
func (r *Recorder) forgetDelegation(child string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pendingDelegations.take(child)
}

// observeChildStart counts how long a child has waited for its start.
func (r *Recorder) observeChildStart(child string, at time.Time) {
	r.mu.Lock()
	asked, ok := r.pendingDelegations.take(child)
	r.mu.Unlock()
	if ok {
		r.delegationWait.Observe(max(0, at.Sub(asked).Seconds()))
	}
}

// beginCall notes the model of the call that an agent begins.
func (r *Recorder) beginCall(agent, model string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, ok := r.agents[agent]; ok {
		a.model, a.firstChunk, a.chunk = model, time.Time{}, time.Time{}
		r.agents[agent] = a
	}
}

// observeChunk counts a piece of a streamed text.
func (r *Recorder) observeChunk(agent string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.agents[agent]
	if !ok {
		return
	}
	if a.firstChunk.IsZero() {
		a.firstChunk = now
	} else {
		provider, model := splitModel(a.model)
		r.outputChunk.WithLabelValues(operationChat, conventionName(r.labels.value(ownProvider, provider)), r.labels.value(ownModel, model)).Observe(now.Sub(a.chunk).Seconds())
	}
	a.chunk = now
	r.agents[agent] = a
}
