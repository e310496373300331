package metrics

import "time"

// Names of the tools of MCP servers: mcp__SERVER__TOOL. One of them reads resources.
const (
	mcpPrefix       = "mcp__"
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

// beginWait notes that a child was asked for.
func (r *Recorder) beginWait(child string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) >= trackedAgentMax { // of runs that this node reads no further
		clear(r.asked)
	}
	r.asked[child] = at
}

// forgetWait is for a child that started elsewhere, or never.
func (r *Recorder) forgetWait(child string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asked, child)
}

// endWait counts how long a child has waited for its start.
func (r *Recorder) endWait(child string, at time.Time) {
	r.mu.Lock()
	asked, ok := r.asked[child]
	delete(r.asked, child)
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
