// Package event names every kind of event that observers see, and the data of each. The component
// that makes a decision also makes its event: agent.Step and supervisor.Step for everything in logs,
// a node for the rest. The kinds and the JSON of the data are a public interface.
package event

import "maps"

// Kind is the word of an event in its document, and in the subject on which it is
// published. It is an alias, so that a document that was read needs no conversion.
type Kind = string

// Event is something that happened in a step of a machine, for observers.
type Event struct {
	Kind Kind
	Turn int
	Data any // by Kind: see RunKinds and NodeKinds
}

// Kinds of events about an agent and its questions.
const (
	KindAgentFinished          Kind = "agent.finished"
	KindAgentHandedOff         Kind = "agent.handed_off"
	KindAgentParked            Kind = "agent.parked"
	KindAgentResumed           Kind = "agent.resumed"
	KindAgentRestarted         Kind = "agent.restarted"
	KindAgentSpawned           Kind = "agent.spawned"
	KindAgentStarted           Kind = "agent.started"
	KindAgentTainted           Kind = "agent.tainted"
	KindAgentWaiting           Kind = "agent.waiting"
	KindCheckpointResumeUnsafe Kind = "checkpoint.resume_unsafe"
	KindQueryAnswered          Kind = "query.answered"
	KindQueryAsked             Kind = "query.asked"
)

// Kinds of events about turns and model calls.
const (
	KindErrorRaised   Kind = "error.raised"
	KindGatePaused    Kind = "gate.paused"
	KindLimitNear     Kind = "limit.near"
	KindLimitSoft     Kind = "limit.soft"
	KindModelFallback Kind = "model.fallback"
	KindModelFinished Kind = "model.finished"
	KindModelRetry    Kind = "model.retry"
	KindModelStarted  Kind = "model.started"
	KindStopAllowed   Kind = "stop.allowed"
	KindStopProposed  Kind = "stop.proposed"
	KindStopVetoed    Kind = "stop.vetoed"
	KindTurnFinished  Kind = "turn.finished"
	KindTurnStarted   Kind = "turn.started"
)

// Kinds of events about the transcript.
const (
	KindMessageAgent      Kind = "message.agent"
	KindMessageAssistant  Kind = "message.assistant"
	KindMessageDelta      Kind = "message.delta"
	KindMessageReasoning  Kind = "message.reasoning"
	KindMessageTombstoned Kind = "message.tombstoned"
	KindMessageUser       Kind = "message.user"
)

// Kinds of events about tool calls and children.
const (
	KindDelegationBackground Kind = "delegation.background"
	KindDelegationFinished   Kind = "delegation.finished"
	KindDelegationRequested  Kind = "delegation.requested"
	KindSkillLoaded          Kind = "skill.loaded"
	KindToolApproved         Kind = "tool.approved"
	KindToolDenied           Kind = "tool.denied"
	KindToolFinished         Kind = "tool.finished"
	KindToolProgress         Kind = "tool.progress"
	KindToolProposed         Kind = "tool.proposed"
	KindToolRetry            Kind = "tool.retry"
	KindToolStarted          Kind = "tool.started"
	KindToolValidated        Kind = "tool.validated"
)

// Kinds of events about the backlog that the agents of a run share.
const (
	KindBacklogClaimed  Kind = "backlog.claimed"
	KindBacklogDone     Kind = "backlog.done"
	KindBacklogDropped  Kind = "backlog.dropped"
	KindBacklogPosted   Kind = "backlog.posted"
	KindBacklogReturned Kind = "backlog.returned"
)

// Kinds of events about hooks.
const (
	KindGuardrailEscalated Kind = "guardrail.escalated"
	KindGuardrailTriggered Kind = "guardrail.triggered"
	KindHookFired          Kind = "hook.fired"
)

// Kinds of events about the context.
const (
	KindContextCompacted   Kind = "context.compacted"
	KindContextTransformed Kind = "context.transformed"
	KindContextChanged     Kind = "context.changed"
	KindJournalUpdated     Kind = "journal.updated"
	KindRecoveryFired      Kind = "recovery.fired"
)

// Kinds of events that an operator may want to investigate.
const (
	KindLoopDetected  Kind = "loop.detected"
	KindWarningRaised Kind = "warning.raised"
)

// Kinds of events about a run and its budget.
const (
	KindBudgetChanged      Kind = "budget.changed"
	KindBudgetDenied       Kind = "budget.denied"
	KindBudgetExhausted    Kind = "budget.exhausted"
	KindBudgetOverrun      Kind = "budget.overrun"
	KindBudgetReserved     Kind = "budget.reserved"
	KindBudgetSettled      Kind = "budget.settled"
	KindLaneFailed         Kind = "lane.failed"
	KindLaneQueued         Kind = "lane.queued"
	KindLaneStarted        Kind = "lane.started"
	KindPermissionsChanged Kind = "permissions.changed"
	KindPolicyApplied      Kind = "policy.applied"
	KindRunFinished        Kind = "run.finished"
	KindRunStarted         Kind = "run.started"
)

// Kinds of events about a node; they are in no log.
const (
	KindLogsAvailable   Kind = "logs.available"
	KindLogsLow         Kind = "logs.low"
	KindLogsUnavailable Kind = "logs.unavailable"
	KindQueryRefused    Kind = "query.refused"
	KindRunParked       Kind = "run.parked"
	KindRunReconciled   Kind = "run.reconciled"
	KindRunQueued       Kind = "run.queued"
	KindRunRemoved      Kind = "run.removed"
	KindScheduleFired   Kind = "schedule.fired"
	KindScheduleMissed  Kind = "schedule.missed"
	KindShardReadable   Kind = "shard.readable"
	KindShardReleased   Kind = "shard.released"
	KindShardTaken      Kind = "shard.taken"
	KindShardUnreadable Kind = "shard.unreadable"
)

// RunKinds are the kinds of events of a run, each with the zero value of its data:
// the schemas of events are generated from them.
func RunKinds() map[Kind]any { return maps.Clone(runKinds) }

var runKinds = map[Kind]any{
	KindAgentFinished:          AgentFinished{},
	KindAgentHandedOff:         AgentHandedOff{},
	KindAgentParked:            AgentParked{},
	KindAgentResumed:           AgentResumed{},
	KindAgentRestarted:         AgentResumed{},
	KindAgentSpawned:           AgentSpawned{},
	KindAgentStarted:           AgentStarted{},
	KindAgentTainted:           AgentTainted{},
	KindAgentWaiting:           AgentWaiting{},
	KindCheckpointResumeUnsafe: ResumeUnsafe{},
	KindQueryAnswered:          QueryAnswered{},
	KindQueryAsked:             AgentParked{},
	KindBacklogClaimed:         BacklogTask{},
	KindBacklogDone:            BacklogTask{},
	KindBacklogDropped:         BacklogTask{},
	KindBacklogPosted:          BacklogTask{},
	KindBacklogReturned:        BacklogTask{},
	KindErrorRaised:            ModelFinished{},
	KindGatePaused:             GatePaused{},
	KindLimitNear:              LimitNear{},
	KindLimitSoft:              LimitReached{},
	KindModelFallback:          Fallback{},
	KindModelFinished:          ModelFinished{},
	KindModelRetry:             ModelFinished{},
	KindModelStarted:           ModelStarted{},
	KindStopAllowed:            Stop{},
	KindStopProposed:           Stop{},
	KindStopVetoed:             Stop{},
	KindTurnFinished:           TurnFinished{},
	KindTurnStarted:            TurnStarted{},
	KindMessageAgent:           AgentSaid{},
	KindMessageAssistant:       Said{},
	KindMessageDelta:           Delta{},
	KindMessageReasoning:       Delta{},
	KindMessageTombstoned:      Said{},
	KindMessageUser:            Said{},
	KindDelegationBackground:   ToolCall{},
	KindDelegationFinished:     ToolCall{},
	KindDelegationRequested:    ToolCall{},
	KindSkillLoaded:            SkillLoaded{},
	KindToolApproved:           ToolDecided{},
	KindToolDenied:             ToolDecided{},
	KindToolFinished:           ToolCall{},
	KindToolProgress:           Progress{},
	KindToolProposed:           ToolCall{},
	KindToolRetry:              ToolRetry{},
	KindToolStarted:            ToolCall{},
	KindToolValidated:          ToolCall{},
	KindGuardrailEscalated:     GuardrailFired{},
	KindGuardrailTriggered:     GuardrailFired{},
	KindHookFired:              HookFired{},
	KindContextCompacted:       Compaction{},
	KindContextTransformed:     ContextTransformed{},
	KindContextChanged:         ContextChanged{},
	KindJournalUpdated:         JournalUpdated{},
	KindRecoveryFired:          Recovery{},
	KindLoopDetected:           LoopDetected{},
	KindWarningRaised:          Warning{},
	KindBudgetChanged:          BudgetChanged{},
	KindBudgetDenied:           BudgetChanged{},
	KindBudgetExhausted:        BudgetChanged{},
	KindBudgetOverrun:          BudgetChanged{},
	KindBudgetReserved:         BudgetChanged{},
	KindBudgetSettled:          BudgetChanged{},
	KindLaneFailed:             LaneFailed{},
	KindLaneQueued:             LaneQueued{},
	KindLaneStarted:            LaneStarted{},
	KindPermissionsChanged:     PermissionsChanged{},
	KindPolicyApplied:          PolicyApplied{},
	KindRunFinished:            Result{},
	KindRunStarted:             RunStarted{},
}

// NodeKinds are the kinds of events of a node, each with the zero value of its data.
func NodeKinds() map[Kind]any {
	return map[Kind]any{
		KindShardTaken:      ShardMoved{},
		KindShardReleased:   ShardMoved{},
		KindShardUnreadable: ShardUnreadable{},
		KindShardReadable:   ShardUnreadable{},
		KindQueryRefused:    QueryRefused{},
		KindRunParked:       RunParked{},
		KindRunQueued:       RunQueued{},
		KindRunReconciled:   RunReconciled{},
		KindRunRemoved:      RunRemoved{},
		KindScheduleFired:   ScheduleFired{},
		KindScheduleMissed:  ScheduleMissed{},
		KindLogsUnavailable: LogState{},
		KindLogsAvailable:   LogState{},
		KindLogsLow:         LogState{},
	}
}
