package metrics

import (
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
)

// Observe counts one event of this node. It never blocks, and is cheap for kinds that change nothing.
func (r *Recorder) Observe(e event.Published) {
	switch d := e.Data.(type) {
	case event.RunStarted:
		r.runsStarted.Inc()
		r.trackRun(e.Run, liveRun{model: d.Model})
	case event.Result:
		r.observeResult(e.Run, d)
	case event.RunRemoved:
		r.runsRemoved.WithLabelValues(d.Why).Inc()
	case event.AgentSpawned:
		r.delegationDepth.Observe(float64(d.Depth))
	case event.AgentStarted:
		r.trackAgent(agentKey(e), liveAgent{name: d.Name, began: eventTime(e)})
		r.observeChildStart(agentKey(e), eventTime(e))
	case event.AgentResumed:
		if e.Kind == event.KindAgentRestarted {
			r.actorRestarts.WithLabelValues(d.Phase).Inc()
		}
	case event.ModelStarted:
		r.beginCall(agentKey(e), d.Model)
	case event.Delta:
		r.observeChunk(agentKey(e), time.Now())
	case event.AgentFinished:
		r.observeAgent(e, d)
	case event.TurnFinished:
		r.turns.WithLabelValues(r.labels.value(ownAgent, r.nameOf(e.Run, e.Agent)), string(d.Transition)).Inc()
	case event.ModelFinished:
		r.observeModel(e, d)
	case event.GatePaused:
		provider, model := splitModel(d.Model)
		if d.AfterMS > 0 {
			r.retryAfter.WithLabelValues(r.labels.value(ownProvider, provider), r.labels.valueOnceKnown(ownModel, model, false)).Observe(seconds(d.AfterMS))
		}
	case event.BudgetChanged:
		r.observeBudget(e, d)
	case event.LoopDetected:
		r.loops.WithLabelValues(r.labels.value(ownTier, d.Tier)).Inc()
	case event.Compaction:
		r.compactions.WithLabelValues(r.labels.value(ownStage, string(d.How))).Inc()
	case event.AgentParked:
		if e.Kind == event.KindQueryAsked {
			r.questions.Inc()
		}
	default:
		r.observeTool(e)
	}
}

// CountTakenOver counts a run that this node continues after another process.
func (r *Recorder) CountTakenOver() { r.runsTakenOver.Inc() }

func (r *Recorder) observeTool(e event.Published) {
	switch d := e.Data.(type) {
	case event.ToolCall:
		switch e.Kind {
		case event.KindDelegationRequested:
			if d.Child != "" {
				r.noteDelegation(e.Run+"."+string(d.Child), eventTime(e))
			}
		case event.KindDelegationFinished:
			r.forgetDelegation(e.Run + "." + string(d.Child))
			r.delegations.WithLabelValues(outcomeOf(d.Error)).Inc()
			r.countSynthetic(d)
		case event.KindToolFinished:
			tool := r.labels.valueOnceKnown(ownTool, d.Tool, !d.Error)
			r.toolCalls.WithLabelValues(tool, outcomeOf(d.Error)).Inc()
			r.countSynthetic(d)
			r.toolDuration.WithLabelValues(operationTool, tool, errorIf(d.Error)).Observe(seconds(d.TookMS))
			if rest, ok := strings.CutPrefix(d.Tool, mcpPrefix); ok {
				method := methodCall
				if strings.HasSuffix(rest, mcpReadResource) {
					method = methodRead
				}
				r.mcpClientDuration.WithLabelValues(method, tool, errorIf(d.Error)).Observe(seconds(d.TookMS))
			}
		}
	case event.ToolDecided:
		if e.Kind == event.KindToolDenied {
			r.toolCalls.WithLabelValues(r.labels.valueOnceKnown(ownTool, d.Tool, false), outcomeDenied).Inc()
		}
	case event.ToolRetry:
		r.toolRetries.WithLabelValues(r.labels.valueOnceKnown(ownTool, d.Tool, false)).Inc()
	}
}

func (r *Recorder) countSynthetic(d event.ToolCall) {
	if d.Synthetic != "" {
		r.synthetic.WithLabelValues(string(d.Synthetic)).Inc()
	}
}

func (r *Recorder) observeModel(e event.Published, d event.ModelFinished) {
	provider, model := splitModel(d.Model)
	provider, model = r.labels.value(ownProvider, provider), r.labels.valueOnceKnown(ownModel, model, e.Kind == event.KindModelFinished)
	code := codeOK
	if e.Kind != event.KindModelFinished {
		code = string(d.Error)
	}
	r.providerRequests.WithLabelValues(provider, model, code).Inc()
	convention := conventionName(provider)
	r.operationDuration.WithLabelValues(operationChat, convention, model, string(d.Error)).Observe(seconds(d.TookMS))
	if d.UsageKnown {
		r.tokenUsage.WithLabelValues(operationChat, convention, model, tokensInput).Observe(float64(d.Usage.Prompt()))
		r.tokenUsage.WithLabelValues(operationChat, convention, model, tokensOutput).Observe(float64(d.Usage.Output))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.agents[agentKey(e)]
	if !ok {
		return
	}
	if !a.firstChunk.IsZero() {
		// The call began before its first piece: the rest of its time has passed since then.
		r.firstChunk.WithLabelValues(operationChat, convention, model).Observe(max(0, seconds(d.TookMS)-time.Since(a.firstChunk).Seconds()))
	}
	a.calls, a.firstChunk, a.chunk = a.calls+1, time.Time{}, time.Time{}
	r.agents[agentKey(e)] = a
}

func (r *Recorder) observeAgent(e event.Published, d event.AgentFinished) {
	r.mu.Lock()
	a, seen := r.agents[agentKey(e)]
	delete(r.agents, agentKey(e))
	r.mu.Unlock()
	name := r.labels.value(ownAgent, d.Name)
	calls := d.Turns // of an agent that another node began
	if seen {
		calls = a.calls
		failure := ""
		if event.Subtype(d.Reason) != "success" {
			failure = string(d.Reason)
		}
		r.agentDuration.WithLabelValues(operationAgent, name, failure).Observe(max(0, eventTime(e).Sub(a.began).Seconds()))
	}
	r.agentCalls.WithLabelValues(operationAgent, name).Observe(float64(calls))
	r.agentToolCalls.WithLabelValues(operationAgent, name).Observe(float64(d.Calls))
}

func (r *Recorder) observeResult(run string, d event.Result) {
	r.runsFinished.WithLabelValues(string(d.Reason)).Inc()
	workflow, failure := "", ""
	for _, a := range d.Agents {
		if a.Parent == nil {
			workflow = a.Name
		}
	}
	if d.IsError {
		failure = string(d.Reason)
	}
	r.runDuration.WithLabelValues(operationRun, r.labels.value(ownAgent, workflow), failure).Observe(seconds(d.DurationMS))
	r.mu.Lock()
	provider, model := splitModel(r.runs[run].model) // empty of a run that began elsewhere
	delete(r.runs, run)
	r.mu.Unlock()
	if d.CostKnown && d.CostUSD > 0 {
		r.cost.WithLabelValues(r.labels.value(ownProvider, provider), r.labels.value(ownModel, model)).Add(d.CostUSD)
	}
}

// trackRun notes a run whose supervisor is on this node.
func (r *Recorder) trackRun(run string, l liveRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.runs[run]; known || len(r.runs) < trackedRunsMax {
		r.runs[run] = l
	}
}

// observeBudget counts what was used since the last state of the budget that was seen here.
func (r *Recorder) observeBudget(e event.Published, d event.BudgetChanged) {
	if e.Kind == event.KindBudgetDenied {
		r.budgetDenied.WithLabelValues(r.labels.value(ownReason, string(d.Why))).Inc()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.runs[e.Run]
	if !known && len(r.runs) >= trackedRunsMax {
		return
	}
	r.runs[e.Run] = liveRun{model: before.model, budget: d}
	if known && d.Used > before.budget.Used {
		r.budgetUsed.Add(float64(d.Used - before.budget.Used))
	}
}

func (r *Recorder) trackAgent(key string, a liveAgent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.agents) >= trackedAgentMax { // agents that went on elsewhere
		clear(r.agents)
	}
	r.agents[key] = a
}

func agentKey(e event.Published) string { return e.Run + "." + e.Agent }

func eventTime(e event.Published) time.Time {
	at, err := time.Parse(time.RFC3339Nano, e.TS)
	if err != nil {
		return time.Now()
	}
	return at
}

// splitModel splits a route PROVIDER/MODEL.
func splitModel(route string) (provider, model string) {
	provider, model, ok := strings.Cut(route, "/")
	if !ok {
		return "", route
	}
	if provider == "script" { // the rest is a path of this machine
		model = "script"
	}
	return provider, model
}

// OwnProviders begins the names of providers that are troupe itself: their models are in this process.
const OwnProviders = "troupe."

// ConventionNames are the provider and the model of a route, as the semantic conventions name them.
func ConventionNames(route string) (provider, model string) {
	provider, model = splitModel(route)
	return conventionName(provider), model
}

// conventionName is the name of a provider in the semantic conventions.
func conventionName(provider string) string {
	switch provider {
	case "gemini":
		return "gcp.gemini"
	case "builtin", "script":
		return OwnProviders + provider
	}
	return provider
}

func outcomeOf(failed bool) string {
	if failed {
		return outcomeError
	}
	return outcomeOK
}

func errorIf(failed bool) string {
	if failed {
		return "tool_error"
	}
	return ""
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }
