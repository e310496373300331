package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
)

// coverage recognizes the places that a step reaches.
type coverage struct {
	*environment
	population *population
}

var takeovers = map[agent.Phase]place{agent.Reserving: placeTakeoverReserving, agent.Thinking: placeTakeoverThinking, agent.Acting: placeTakeoverActing,
	agent.Waiting: placeTakeoverWaiting, agent.Stopping: placeTakeoverStopping, agent.Hooking: placeTakeoverHooking}

var cancels = map[agent.Phase]place{"": placeCancelEarly, agent.Reserving: placeCancelReserving, agent.Thinking: placeCancelThinking, agent.Acting: placeCancelActing,
	agent.Waiting: placeCancelWaiting, agent.Stopping: placeCancelStopping, agent.Hooking: placeCancelHooking}

var closings = map[spec.Reason]place{spec.TokenBudget: placeClosingTokens, spec.CostBudget: placeClosingMoney, spec.MaxTurns: placeClosingTurns,
	spec.MaxToolCalls: placeClosingCalls, spec.Timeout: placeClosingTime, spec.Vetoed: placeClosingVetoed}

// noteAgentStep notes where a step of an agent has been.
func (cov *coverage) noteAgentStep(before, after *agent.State, f activation.Fact) {
	place := func(table map[agent.Phase]place) {
		if p, ok := table[before.Phase]; ok {
			cov.reach.hit(p)
		}
	}
	switch f.Kind {
	case "resumed":
		if before.Activation != "" {
			place(takeovers)
		}
	case "canceled":
		place(cancels)
	}
	cov.noteLoopOptions(before, after, f)
	if f.Kind == "answered" && before.Suspended.Question.Reason == spec.ResumeUnsafe && !asksPerson(after) && len(after.Calls) > 0 {
		cov.reach.hit(placeApproved)
	}
	if after.ClosingReason != "" && after.Phase == agent.Thinking && before.Phase != agent.Thinking {
		if p, ok := closings[after.ClosingReason]; ok {
			cov.reach.hit(p)
		}
	}
	if after.Cuts > before.Cuts && after.Phase != agent.Done {
		cov.reach.hit(placeCutRecovery)
	}
	if after.Retries > before.Retries {
		cov.reach.hit(placeRetried)
	}
	if after.Transition == spec.Steering && before.Transition != spec.Steering {
		cov.reach.hit(placeSteering)
	}
	// A reply decides nothing about the turn that it answers.
	if t := after.Transition; t != "" && (t != before.Transition || after.Reservation != before.Reservation || after.Suspended.Question != before.Suspended.Question) {
		cov.reach.hit(transitionPlace(t))
	}
	if before.Phase != agent.Done && after.Phase == agent.Done {
		cov.reach.hit(reasonPlace(after.Outcome.Reason))
		cov.noteEnd(before, after, f)
	}
}

func (cov *coverage) noteEnd(before, after *agent.State, f activation.Fact) {
	switch o := after.Outcome; o.Reason {
	case spec.Malformed:
		cov.reach.hit(placeMalformedEnd)
	case spec.MaxOutputTokens:
		cov.reach.hit(placeCutEnd)
	case spec.Vetoed:
		if f.Kind == "stop_vetoed" {
			cov.reach.hit(placeVetoFinal)
		}
	case spec.Timeout:
		if f.Kind == "woke" || before.Cancel != nil {
			cov.reach.hit(placeHardTimeout)
		}
	case spec.ModelError:
		cov.reach.hit(placeModelErrorEnd)
	}
}

func (cov *coverage) noteReturned(before agent.State, after *agent.State, e agent.Returned, f activation.Fact) {
	if before.Phase == agent.Done {
		cov.reach.hit(placeReturnedAfterEnd)
	}
	if asksPerson(&before) && !asksPerson(after) {
		cov.reach.hit(placeLateReturned)
	}
	for _, c := range before.Calls {
		if c.ID == e.Call && f.From == "" && (c.Attempt != e.Attempt || c.Stage != agent.Running) {
			cov.reach.hit(placeReturnedIgnored)
		}
	}
}

// noteLoopOptions notes the outcomes of the loop options.
func (cov *coverage) noteLoopOptions(before, after *agent.State, f activation.Fact) {
	at := func(stage agent.Stage) bool {
		return slices.ContainsFunc(before.Calls, func(c agent.Call) bool { return c.Stage == stage })
	}
	switch f.Kind {
	case "recalled":
		cov.reach.hit(placeForked)
	case "resumed":
		if at(agent.Gated) {
			cov.reach.hit(placeTakeoverGated)
		}
		if before.Purpose == agent.ForSummary && before.Phase == agent.Thinking {
			cov.reach.hit(placeSummaryLost)
		}
	case "canceled":
		if at(agent.Gated) {
			cov.reach.hit(placeCancelGated)
		}
		if at(agent.Retrying) {
			cov.reach.hit(placeCancelRetrying)
		}
	}
	cov.notePause(before, after, f)
	if asksPerson(after) && !asksPerson(before) {
		cov.reach.hit(cov.questionSource(after))
	}
	for i := range after.Calls {
		if i < len(before.Calls) && after.Calls[i].Tries > before.Calls[i].Tries {
			cov.reach.hit(placeToolRetried)
		}
		if i < len(before.Calls) && after.Calls[i].Gate.Again > before.Calls[i].Gate.Again {
			cov.reach.hit(placeAskedElsewhere)
		}
	}
	if after.Fold != before.Fold {
		if before.Fold.Upto > 0 {
			cov.reach.hit(placeFoldedAgain)
		}
		if after.Fold.Plain {
			cov.reach.hit(placeFoldedPlain)
		}
		if after.Journal.Shown.Text != "" {
			cov.reach.hit(placeJournalShown)
		}
	}
}

// questionSource returns the place for the source of a question to a person: the loop, the model, a hook or a resume.
func (cov *coverage) questionSource(after *agent.State) place {
	q := after.Suspended.Question
	if q.Reason == spec.ResumeUnsafe && q.Call != "" {
		return placeUnknownOutcome
	}
	i := slices.IndexFunc(after.Calls, func(c agent.Call) bool { return c.ID == q.Call })
	switch {
	case i < 0:
		return placeAskedByLoop
	case after.Calls[i].Name == "ask_human" && after.Calls[i].Stage == agent.Running:
		return placeAskedByModel
	}
	return placeAskedByHook
}

// notePause notes the outcomes of waits at throttles.
func (cov *coverage) notePause(before, after *agent.State, f activation.Fact) {
	if isPaused(after) && !isPaused(before) {
		if after.ClosingReason != "" {
			cov.reach.hit(placePausedClosing)
		}
		if after.Purpose == agent.ForSummary {
			cov.reach.hit(placePausedSummary)
		}
	}
	if !isPaused(before) {
		return
	}
	switch f.Kind {
	case "resumed":
		cov.reach.hit(placePausedTakeover)
	case "canceled":
		cov.reach.hit(placePausedCancel)
	case "woke":
		if !isPaused(after) && after.Cancel == nil {
			cov.reach.hit(placePatienceEnded)
		}
	}
}
