package metrics

import "github.com/prometheus/client_golang/prometheus"

// instruments are the metrics that events change.
type instruments struct {
	tokenUsage, operationDuration              *prometheus.HistogramVec
	agentDuration, agentCalls, agentToolCalls  *prometheus.HistogramVec
	toolDuration, runDuration                  *prometheus.HistogramVec
	firstChunk, outputChunk                    *prometheus.HistogramVec
	mcpClientDuration, mcpServerDuration       *prometheus.HistogramVec
	delegationDepth, delegationWait            prometheus.Histogram
	logAppends                                 *prometheus.HistogramVec
	actorRestarts                              *prometheus.CounterVec
	runsStarted, runsTakenOver                 prometheus.Counter
	runsFinished, turns, delegations           *prometheus.CounterVec
	runsRemoved                                *prometheus.CounterVec
	budgetUsed, questions                      prometheus.Counter
	budgetDenied, cost, toolCalls, toolRetries *prometheus.CounterVec
	loops, compactions, providerRequests       *prometheus.CounterVec
	retryAfter                                 *prometheus.HistogramVec
	synthetic                                  *prometheus.CounterVec
}

func newInstruments() instruments {
	return instruments{
		tokenUsage: newHistogram(tokenUsage,
			"Tokens of one model call.", tokenBuckets, labelOperation, labelProvider, labelModel, labelTokenType),
		operationDuration: newHistogram(operationDuration, "Duration of one attempt of a model call.", secondsBuckets, labelOperation, labelProvider, labelModel, labelErrorType),
		agentDuration:     newHistogram(agentDuration, "Time from the start of an agent to its end, waiting included, of agents that stayed on this node.", agentBuckets, labelOperation, labelAgent, labelErrorType),
		agentCalls:        newHistogram(agentCalls, "Model calls of one agent.", countBuckets, labelOperation, labelAgent),
		agentToolCalls:    newHistogram(agentToolCalls, "Tool calls of one agent.", countBuckets, labelOperation, labelAgent),
		toolDuration: newHistogram(toolDuration,
			"Duration of one tool call.", secondsBuckets, labelOperation, labelTool, labelErrorType),
		runDuration: newHistogram(runDuration,
			"Duration of a run.", agentBuckets, labelOperation, labelWorkflow, labelErrorType),
		firstChunk:        newHistogram(firstChunk, "Time from the start of a model call to the first piece of its text, of calls that streamed.", secondsBuckets, labelOperation, labelProvider, labelModel),
		outputChunk:       newHistogram(outputChunk, "Time from one piece of a streamed text to the next.", secondsBuckets, labelOperation, labelProvider, labelModel),
		mcpClientDuration: newHistogram(mcpClientDuration, "Duration of a call at an MCP server.", mcpBuckets, labelMCPMethod, labelTool, labelErrorType),
		mcpServerDuration: newHistogram(mcpServerDuration, "Duration of a request to the MCP server of this node.", mcpBuckets, labelMCPMethod, labelTool, labelErrorType),
		delegationWait:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: delegationWait, Help: "Time from a delegation to the start of its child, of children that start on the node of their parent.", Buckets: secondsBuckets}),
		logAppends:        newHistogram(logAppend, "Time from the append of an entry until it is stored, of all replicas that must have it.", appendBuckets, ownOutcome),
		actorRestarts:     newCounter(actorRestarts, "Agents whose actor began again after a crash, a kill or a lost lease, by what they were doing.", ownPhase),
		delegationDepth:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: delegationDepth, Help: "Depth of an agent in its tree; a root has 0.", Buckets: depthBuckets}),
		runsStarted:       prometheus.NewCounter(prometheus.CounterOpts{Name: runsStarted, Help: "Runs that began."}),
		runsTakenOver:     prometheus.NewCounter(prometheus.CounterOpts{Name: runsTakenOver, Help: "Runs that this node continued after another process had worked on them."}),
		runsFinished:      newCounter(runsFinished, "Runs that ended.", ownStopReason),
		runsRemoved:       newCounter(runsRemoved, "Runs that this node removed by retention.", ownReason),
		turns: newCounter(turnsTotal,
			"Turns that ended, by why the loop went on; the last turn of an agent has none.", ownAgent, ownTransition),
		delegations:  newCounter(delegations, "Answers of children.", ownOutcome),
		budgetUsed:   prometheus.NewCounter(prometheus.CounterOpts{Name: budgetUsed, Help: "Tokens that runs used while their supervisor was on this node."}),
		questions:    prometheus.NewCounter(prometheus.CounterOpts{Name: questionsAsked, Help: "Questions to people."}),
		budgetDenied: newCounter(budgetDenied, "Reservations that were denied.", ownReason),
		cost: newCounter(costUSD,
			"US dollars of runs that ended, as far as prices are known, by the model of the run.", ownProvider, ownModel),
		toolCalls:   newCounter(toolCalls, "Tool calls that ended or were denied.", ownTool, ownOutcome),
		toolRetries: newCounter(toolRetries, "Tool calls that were tried again.", ownTool),
		synthetic:   newCounter(syntheticResults, "Results that the loop wrote for tool calls that were kept from beginning or cut off.", ownPath),
		loops:       newCounter(loopDetections, "Times that an agent was found to repeat itself.", ownTier),
		compactions: newCounter(compactions, "Compactions of prompts.", ownStage),
		providerRequests: newCounter(providerRequests,
			"Attempts of model calls, by ok or the class of the error.", ownProvider, ownModel, ownCode),
		retryAfter: newHistogram(providerRetryAfter,
			"Time for which a provider asked callers to wait.", agentBuckets, ownProvider, ownModel),
	}
}

func newHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (i instruments) all() []prometheus.Collector {
	return []prometheus.Collector{i.tokenUsage, i.operationDuration, i.agentDuration, i.agentCalls, i.agentToolCalls, i.toolDuration, i.runDuration, i.delegationDepth,
		i.runsStarted, i.runsTakenOver, i.runsFinished, i.runsRemoved, i.turns, i.delegations, i.budgetUsed, i.questions, i.budgetDenied, i.cost, i.toolCalls, i.toolRetries,
		i.firstChunk, i.outputChunk, i.mcpClientDuration, i.mcpServerDuration, i.delegationWait, i.actorRestarts, i.logAppends, i.loops, i.synthetic, i.compactions, i.providerRequests, i.retryAfter}
}
