package sim

// invariant is a rule about the run as a whole that a judge holds. A failure begins with its name.
type invariant string

// The invariants: this is the only list of them. TestInvariants fails if no judge holds one, and if a failure names none.
const (
	// factsAreReadable: what an actor writes decodes, and the simulator knows each effect and reason.
	factsAreReadable invariant = "facts-are-readable"
	// runsEnd: a run comes to its end by itself, without waiting for a time limit, and is published once.
	runsEnd invariant = "runs-end"
	// onlyTheCurrentActs: an activation acts after it has read its own claim, and begins nothing without a lease that it has proven.
	onlyTheCurrentActs invariant = "only-the-current-acts"
	// logsDecide: a shell has the state that its log says, and a step changes no other state.
	logsDecide invariant = "logs-decide"
	// noQuestionNoAnswer: an answer to a question that was not asked changes nothing.
	noQuestionNoAnswer invariant = "no-question-no-answer"
	// factsCountOnce: a message, a command and the result of a tool each count, once.
	factsCountOnce invariant = "facts-count-once"
	// messagesAreAsLogged: a message is what the log of its sender says, and none is lost.
	messagesAreAsLogged invariant = "messages-are-as-logged"
	// floorsAreTrue: an ack floor and a Closed claim only what has arrived.
	floorsAreTrue invariant = "floors-are-true"
	// damageIsNoticed: damage to a log is noticed, ends the run, and is not claimed of a whole log.
	damageIsNoticed invariant = "damage-is-noticed"
	// logVerifiedFirst: nothing begins before the supervisor has compared the log with what it has received.
	logVerifiedFirst invariant = "log-verified-first"
	// oneAppendAtATime: an actor has one entry in flight to a receiver.
	oneAppendAtATime invariant = "one-append-at-a-time"
	// passivationIsSafe: an actor rests only when nothing of it is under way or due.
	passivationIsSafe invariant = "passivation-is-safe"
	// timersCount: a timer ends no wait too early.
	timersCount invariant = "timers-count"
	// callsBeginOnce: an attempt begins once, after its Started, and again only by a decision of a person.
	callsBeginOnce invariant = "calls-begin-once"
	// callsAreValid: a call that runs was asked for, is offered, and has valid arguments.
	callsAreValid invariant = "calls-are-valid"
	// sideEffectsRunAlone: a side effect runs beside no other call, and no more calls run at once than are allowed.
	sideEffectsRunAlone invariant = "side-effects-run-alone"
	// approvalFirst: no call that rules ask about begins without its own approval.
	approvalFirst invariant = "approval-first"
	// approvalOnce: an approval starts at most one call: the one that the person read, with these arguments, in time.
	approvalOnce invariant = "approval-once"
	// deniedNeverRuns: a call that a rule denies never begins.
	deniedNeverRuns invariant = "denied-never-runs"
	// questionsExpireInTime: a question expires when its time is over.
	questionsExpireInTime invariant = "questions-expire-in-time"
	// rightsShrink: no agent has a right, a hook or a rule less strict than its parent, also after a change of live rights.
	rightsShrink invariant = "rights-shrink"
	// parkedRunsWaitForPeople: in a parked run each agent waits for a person or for an agent below it.
	parkedRunsWaitForPeople invariant = "parked-runs-wait-for-people"
	// narrowingsReachAll: a change that takes rights reaches the agent and those below it, and makes rights narrower.
	narrowingsReachAll invariant = "narrowings-reach-all"
	// outsideTextIsMarked: what an agent says after it has read text from outside is marked.
	outsideTextIsMarked invariant = "outside-text-is-marked"
	// hooksDecide: each hook at a hook point is asked once in an activation, and its decision is obeyed.
	hooksDecide invariant = "hooks-decide"
	// guardrailsHold: no result, reply or answer contains what a guardrail rejected.
	guardrailsHold invariant = "guardrails-hold"
	// nothingAfterCancel: nothing begins after a cancel, an end or the end of an agent above.
	nothingAfterCancel invariant = "nothing-after-cancel"
	// treeStaysWithinLimits: agents, depth and live children stay within their limits, and no child outlives its parent.
	treeStaysWithinLimits invariant = "tree-stays-within-limits"
	// childrenAnswerAfterTheirEnd: a parent reads the answer of a child after the end of that child, for the attempt that asked.
	childrenAnswerAfterTheirEnd invariant = "children-answer-after-their-end"
	// vetoesAreBounded: vetoes in a row are bounded.
	vetoesAreBounded invariant = "vetoes-are-bounded"
	// policyInForceDecides: a verdict is that of the policy in force, and names its version.
	policyInForceDecides invariant = "policy-in-force-decides"
	// poolAddsUp: the pool and its accounts add up, never go back, and nothing is left at the end.
	poolAddsUp invariant = "pool-adds-up"
	// spendingStaysWithinLimits: what is spent, held, kept and carved stays within the limits of the run, a subtree and an agent.
	spendingStaysWithinLimits invariant = "spending-stays-within-limits"
	// reservedFirst: a model call has a reservation that covers it, one for each attempt.
	reservedFirst invariant = "reserved-first"
	// grantsAreDue: nothing is granted after a cancel, beyond a closing turn of a frozen or overrun budget, or twice.
	grantsAreDue invariant = "grants-are-due"
	// allowancesAreCovered: attempts under an allowance stay within it, and an allowance is recalled when others wait.
	allowancesAreCovered invariant = "allowances-are-covered"
	// budgetInOrder: agents that wait for budget are answered in order.
	budgetInOrder invariant = "budget-in-order"
	// billsAreCharged: no bill of a provider is above what was charged.
	billsAreCharged invariant = "bills-are-charged"
	// throttlesAreObeyed: no request is sent before the time that its provider named, and throttled agents hold no reservation.
	throttlesAreObeyed invariant = "throttles-are-obeyed"
	// throttlesAreFair: rate limits and the turns of others at a throttle stay within what the settings allow.
	throttlesAreFair invariant = "throttles-are-fair"
	// modelAsSet: an agent calls the model that its log and the run have set.
	modelAsSet invariant = "model-as-set"
	// contextAsSet: an agent is sent the prompt and gets the layers that its log and the run have set.
	contextAsSet invariant = "context-as-set"
	// transcriptGrows: the transcript only grows, and its record is well formed.
	transcriptGrows invariant = "transcript-grows"
	// promptsAreComplete: a prompt begins as the one before unless it was compacted, and has the task and the evidence.
	promptsAreComplete invariant = "prompts-are-complete"
	// compactionIsBounded: compactions and recoveries of a context are bounded, and fold only what is new.
	compactionIsBounded invariant = "compaction-is-bounded"
	// loopLimitsHold: turns, retries, attempts, blocks and continuations stay within their limits.
	loopLimitsHold invariant = "loop-limits-hold"
	// breakersStop: an agent that repeats failures or forbidden calls is stopped or asks a person.
	breakersStop invariant = "breakers-stop"
	// completedMeansDone: an agent is completed with its evidence, by its schema, and not after a declared failure or a denial.
	completedMeansDone invariant = "completed-means-done"
	// waitsAreNamed: a waiting agent says what it waits for, and asks only whom it may ask.
	waitsAreNamed invariant = "waits-are-named"
	// driftAsksFirst: on a node that differs nothing begins before a person has approved the difference.
	driftAsksFirst invariant = "drift-asks-first"
	// backgroundIsHeard: messages and the ends of background children reach an agent once, from their true senders.
	backgroundIsHeard invariant = "background-is-heard"
	// handoffsAreClean: a conversation that was handed off has one agent, with its history, and counts once.
	handoffsAreClean invariant = "handoffs-are-clean"
	// backlogHasOneOwner: a task of the backlog has one owner at a time, by a claim, and keeps its state.
	backlogHasOneOwner invariant = "backlog-has-one-owner"
	// steeringTakesEffect: a message that takes effect now precedes the next request, and stops only what it may.
	steeringTakesEffect invariant = "steering-takes-effect"
	// parkedRunsExpire: a run ends as unanswered only after its time for answers.
	parkedRunsExpire invariant = "parked-runs-expire"
	// forksRepeatNothing: a fork has the states of its original, is charged only for itself, and repeats nothing by itself.
	forksRepeatNothing invariant = "forks-repeat-nothing"
	// oneActiveRunPerLane: a lane has at most one active run, and starts the others in order.
	oneActiveRunPerLane invariant = "one-active-run-per-lane"
)
