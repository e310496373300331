package agent

// Kinds are the kinds of notes that agents make, each with the zero value of
// its data: what the schemas of events are made from.
func Kinds() map[string]any {
	return map[string]any{
		"agent.started": AgentStarted{}, "agent.resumed": AgentResumed{}, "agent.parked": AgentParked{}, "agent.finished": AgentFinished{},
		"turn.started": TurnStarted{}, "turn.finished": TurnFinished{},
		"model.started": ModelStarted{}, "model.finished": ModelFinished{}, "model.retry": ModelFinished{}, "error.raised": ModelFinished{},
		"message.agent": AgentSaid{}, "agent.waiting": AgentWaiting{},
		"message.user": Said{}, "message.assistant": Said{}, "message.tombstoned": Said{},
		"tool.proposed": ToolNote{}, "tool.validated": ToolNote{}, "tool.started": ToolNote{}, "tool.finished": ToolNote{},
		"delegation.requested": ToolNote{}, "delegation.finished": ToolNote{}, "delegation.background": ToolNote{},
		"stop.proposed": StopNote{}, "stop.allowed": StopNote{}, "stop.vetoed": StopNote{},
		"query.asked": AgentParked{}, "query.answered": QueryAnswered{},
		"checkpoint.resume_unsafe": Unsafe{},
		"limit.soft":               Limited{}, "loop.detected": LoopDetected{}, "warning.raised": Warned{},
		"context.compacted": Compaction{}, "recovery.fired": Recovery{}, "journal.updated": JournalUpdated{},
		"model.fallback": Fallback{}, "gate.paused": GatePaused{}, "tool.retry": ToolRetry{}, "skill.loaded": SkillLoaded{},
		"hook.fired": HookFired{}, "guardrail.triggered": GuardrailFired{}, "guardrail.escalated": GuardrailFired{},
		"context.transformed": ContextTransformed{}, "tool.denied": ToolDecided{}, "tool.approved": ToolDecided{},
	}
}
