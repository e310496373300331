package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
)

// place is a corner that a suite has to have been in: a green run that never
// saw a takeover proves nothing.
type place int

// reachCounts counts how often each place was reached: those below, then every
// transition, then every stop reason.
type reachCounts [placesMax + transitionsMax + reasonsMax]int

// How many transitions and stop reasons there are; sim_test.go compares.
const (
	transitionsMax = 19
	reasonsMax     = 26
)

// needPerson are the stop reasons that only a person's decision leads to.
var needPerson = []spec.Reason{spec.ResumeUnsafe}

func (r *reachCounts) hit(p place) { r[p]++ }

// add adds the counts of another.
func (r *reachCounts) add(o *reachCounts) {
	for i := range r {
		r[i] += o[i]
	}
}

// byChance are the places that a seed in several thousand reaches: a short suite
// may miss them by chance.
var byChance = []place{placeDamagedByReservation, placeVerifiedAfterCut, placeMailAtStop}

// byChanceMin is how many seeds are asked to have reached those, too.
const byChanceMin = 20_000

// missing lists the places that a suite of that many seeds should have reached, and did not.
func (r *reachCounts) missing(seeds int) []string {
	var list []string
	for i, n := range r {
		p := place(i)
		if seeds < byChanceMin && slices.Contains(byChance, p) {
			continue
		}
		if reason, ok := p.stopReason(); n == 0 && !(ok && slices.Contains(needPerson, reason)) {
			list = append(list, p.String())
		}
	}
	return list
}

// transitionPlace is the place of a transition, ended that of a stop reason.
func transitionPlace(t spec.Transition) place {
	return placesMax + place(slices.Index(spec.Transitions(), t))
}

func reasonPlace(r spec.Reason) place {
	return placesMax + transitionsMax + place(slices.Index(spec.Reasons(), r))
}

func (p place) stopReason() (spec.Reason, bool) {
	if p < placesMax+transitionsMax {
		return "", false
	}
	return spec.Reasons()[p-placesMax-transitionsMax], true
}

// The places.
const (
	placeReclaimed place = iota
	placeCheckpointPosted
	placePanicRestart
	placeLandedTwice
	placeUndecoded
	placeStartedSuperseded
	placeGivenUp
	placeTakeoverReserving
	placeTakeoverThinking
	placeTakeoverActing
	placeTakeoverWaiting
	placeTakeoverStopping
	placeCancelEarly
	placeCancelReserving
	placeCancelThinking
	placeCancelActing
	placeCancelWaiting
	placeCancelStopping
	placeUnknownOutcome
	placeLateReturned
	placeApproved
	placeReturnedIgnored
	placeDeniedAtZero
	placeDeniedShort
	placeDeniedCarved
	placeClosingTokens
	placeClosingMoney
	placeClosingTurns
	placeClosingCalls
	placeClosingTime
	placeClosingVetoed
	placeVetoFinal
	placeVetoes
	placeMalformedEnd
	placeCutRecovery
	placeCutEnd
	placeRetried
	placeHardTimeout
	placeSteering
	placeWaitQueue
	placeOverrunBooked
	placeLostCharged
	placeDamagedByReport
	placeDamagedByReservation
	placeVerifiedAfterCut
	placeDamagedByHash
	placeRefusedDepth
	placeRefusedChildren
	placeRefusedAgents
	placeRefusedUnknown
	placeRefusedBudget
	placeRefusedCanceled
	placeRefusedOverrun
	placeOrphanStopped
	placeCancelInQueue
	placeReturnedAfterEnd
	placeModelErrorEnd
	placeFlooded
	placeReplaced
	placeTakeoverHooking
	placeCancelHooking
	placeTakeoverGated
	placeAskedElsewhere
	placeCancelGated
	placeHookedLate
	placeGateDenied
	placeAskedByHook
	placeAskedByModel
	placeAskedByLoop
	placeToolRetried
	placeCancelRetrying
	placeFoldedAgain
	placeFoldedPlain
	placeSummaryLost
	placeJournalShown
	placeForked
	placeRefusedFrozen
	placeHaltedDiffering
	placeReservationSpared
	placeRelieved
	placeHandedOverThinking
	placeHandedOverActing
	placeStormed
	placeThrottled
	placeAdmittedAtGate
	placeSharedGate
	placeHeldByRate
	placeLowerPriorityWaits
	placePausedTakeover
	placePausedCancel
	placePausedClosing
	placePausedSummary
	placePatienceEnded
	placeRestReserving
	placeRestActing
	placeRestWaiting
	placeRestPerson
	placeRestSuper
	placeRestInVain
	placeWokenByEntry
	placeWokenByClock
	placeCancelResting
	placeRefusedSchema
	placeSentOff
	placeSatIdle
	placeIdleTakeover
	placeIdleCanceled
	placeIdleSteered
	placeWokenByAnswer
	placeWokenByMessage
	placeTakenAlong
	placeMailAtStop
	placeMessageSent
	placeMessageToEnded
	placeMessageToNobody
	placeMessageCanceled
	placeMessagesOut
	placeRepeatedEnd // P25
	placeBeheaded    // P26
	placeRunTailLost
	placeAllowanceGranted
	placeAllowanceRecalled
	placeAllowanceReturned
	placeAttemptAhead
	placeAttemptKept
	placeApprovedCall
	placeRuleDenied
	placeQuestionExpired
	placeAnswerRefused
	placeTwoApproved
	placeTaintedAsked
	placeTaintedDenied
	placeHandedOff
	placeHandedOn
	placeHandoffRefused
	placeHandoffsOut
	placeHandoffBesideCalls
	placeHandoffTakeover
	placeHandoffCanceled
	placeHandoffPassedOn
	placeModelSet
	placeModelSetOverARequest
	placeBegunWithModelSet
	placeOthersUse
	placeRunForked
	placeRunForkedRequest
	placeContextSet
	placeContextSetOverARequest
	placeContextPassedOn
	placeContextRefused
	placeBegunWithLayers
	placeBacklogPosted
	placeBacklogClaimed
	placeBacklogLeaseEnded
	placeBacklogDone
	placeBacklogDropped
	placeBacklogReleased
	placePreempted
	placeReadAborted
	placeSubtreeLimited
	placeSubtreeFrozen
	placeSubtreeThawed
	placeRightsNarrowed
	placeRightsNarrowedBelow
	placeNarrowingRefused
	placeBegunNarrowed
	placeNarrowedAtAGate
	placesMax
)

var placeNames = [placesMax]string{"reclaim", "checkpoint by length", "restart under the same lease", "an append that landed twice",
	"an entry that did not decode", "Started of a superseded activation", "a child given up", "takeover while reserving", "takeover while thinking",
	"takeover while acting", "takeover while waiting", "takeover while stopping", "cancel before Submitted", "cancel while reserving",
	"cancel while thinking", "cancel while acting", "cancel while waiting", "cancel while stopping", "unknown outcome parks",
	"a late result resolves a park", "a person approves", "a zombie's result is ignored", "denied at exactly 0 left", "denied", "denied while a share is held for another",
	"closing turn by tokens", "closing turn by money", "closing turn by turns", "closing turn by calls", "closing turn by time",
	"closing turn by veto", "the final veto", "a veto", "malformed end", "cut and continued", "cut once too often", "a retry",
	"hard time limit", "steered", "the queue of reservations", "overrun", "a lost call is charged", "damaged by ReportLog", "damaged by a reservation", "a side effect after a cut", "damaged by hash",
	"refused by depth", "refused by children", "refused by agents", "refused: unknown agent", "refused by budget", "refused: canceled",
	"refused by overrun",
	"an orphan is stopped", "cancel of one that waits for money", "Returned after the end", "model error end",
	"100,000 calls in a reply", "an entry that was too large", "takeover at a gate", "cancel at a gate", "takeover at the gate of a call",
	"hooks are asked anew",
	"cancel at the gate of a call", "an answer of hooks that comes too late", "a call that hooks deny", "a hook asks a person", "a model asks a person",
	"the loop asks a person", "a tool is tried again", "cancel before a retry", "a fold over a fold", "a fold that no model wrote", "takeover during a summary",
	"the journal is shown", "a child begins with its parent's history",
	"refused: the budget is frozen", "a node that differs halts an agent",
	"a reservation is returned unused", "a node that does not differ lets an agent go on", "handed over with a reservation that was not used", "handed over while acting",
	"a provider refuses everybody", "a reservation comes back from a throttle", "an agent's turn at a gate", "families share a gate", "held back by a rate", "a priority waits while another has its turn",
	"takeover at the gate of a model", "cancel at the gate of a model", "a closing turn at the gate of a model", "a summary at the gate of a model",
	"the end of patience",
	"rests in the queue for money", "rests while children work", "rests until a retry, or a person", "rests until a person answers", "a supervisor rests",
	"something came before the rest was said", "woken by an entry", "woken by the clock", "canceled while at rest",
	"refused: the agent has a schema of its own", "a child in the background", "idle until children in the background answer", "takeover of one that sits idle",
	"cancel of one that sits idle", "a person wakes one that sits idle", "woken by an answer", "woken by a message",
	"an end that takes children in the background along", "a message while a stop is decided", "a message is sent", "a message to one that has ended",
	"a message to nobody", "a message after the cancel", "too many messages",
	"a closed log repeats its end", "a log has lost its head", "the log of the run has lost its tail",
	"an allowance is granted", "an allowance is recalled", "an allowance is returned", "an attempt under an allowance",
	"an attempt that outlives its allowance",
	"a call that a person approved", "a call that a rule denies", "a question that expires", "an answer about another call", "a call that two people approved", "a tainted call asked about", "a tainted call denied",
	"a conversation is handed off", "a conversation is handed on", "a handoff is refused", "too many handoffs", "a handoff beside other calls",
	"takeover after a handoff", "cancel after a handoff", "a message is passed on",
	"another model is set", "another model is set over a request", "an agent begins with the model that was set", "other agents use the budget",
	"a run is forked", "a fork goes on over a request of its original",
	"a prompt is changed", "a prompt is changed over a request", "a change reaches agents below", "a change of a prompt is refused", "an agent begins with layers of those above",
	"a task is posted", "a task is claimed", "a task is claimed whose lease has ended", "a task is done", "a task is dropped", "the end of an agent opens its tasks again",
	"a message preempts a turn", "a message aborts a read",
	"a subtree is limited", "an agent of a frozen subtree waits", "a subtree is unfrozen",
	"rights become narrower", "rights become narrower below", "a change that narrows nothing is refused", "an agent begins with narrowed rights", "rights become narrower while a call waits"}

// String names a place.
func (p place) String() string {
	if r, ok := p.stopReason(); ok {
		return "ended: " + string(r)
	}
	if p >= placesMax {
		return "transition: " + string(spec.Transitions()[p-placesMax])
	}
	return placeNames[p]
}
