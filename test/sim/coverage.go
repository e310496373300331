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

var takeovers = map[agent.Phase]Place{agent.Reserving: TakeoverReserving, agent.Thinking: TakeoverThinking, agent.Acting: TakeoverActing,
	agent.Waiting: TakeoverWaiting, agent.Stopping: TakeoverStopping, agent.Hooking: TakeoverHooking}

var cancels = map[agent.Phase]Place{"": CancelEarly, agent.Reserving: CancelReserving, agent.Thinking: CancelThinking, agent.Acting: CancelActing,
	agent.Waiting: CancelWaiting, agent.Stopping: CancelStopping, agent.Hooking: CancelHooking}

var closings = map[spec.Reason]Place{spec.TokenBudget: ClosingTokens, spec.CostBudget: ClosingMoney, spec.MaxTurns: ClosingTurns,
	spec.MaxToolCalls: ClosingCalls, spec.Timeout: ClosingTime, spec.Vetoed: ClosingVetoed}

// noteAgentStep notes where a step of an agent has been.
func (cov *coverage) noteAgentStep(before, after *agent.State, f activation.Fact) {
	place := func(table map[agent.Phase]Place) {
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
		cov.reach.hit(Approved)
	}
	if after.ClosingReason != "" && after.Phase == agent.Thinking && before.Phase != agent.Thinking {
		if p, ok := closings[after.ClosingReason]; ok {
			cov.reach.hit(p)
		}
	}
	if after.Cuts > before.Cuts && after.Phase != agent.Done {
		cov.reach.hit(CutRecovery)
	}
	if after.Retries > before.Retries {
		cov.reach.hit(Retried)
	}
	if after.Transition == spec.Steering && before.Transition != spec.Steering {
		cov.reach.hit(Steering)
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
		cov.reach.hit(MalformedEnd)
	case spec.MaxOutputTokens:
		cov.reach.hit(CutEnd)
	case spec.Vetoed:
		if f.Kind == "stop_vetoed" {
			cov.reach.hit(VetoFinal)
		}
	case spec.Timeout:
		if f.Kind == "woke" || before.Cancel != nil {
			cov.reach.hit(HardTimeout)
		}
	case spec.ModelError:
		cov.reach.hit(ModelErrorEnd)
	}
}

func (cov *coverage) noteReturned(before agent.State, after *agent.State, e agent.Returned, f activation.Fact) {
	if before.Phase == agent.Done {
		cov.reach.hit(ReturnedAfterEnd)
	}
	if asksPerson(&before) && !asksPerson(after) {
		cov.reach.hit(LateReturned)
	}
	for _, c := range before.Calls {
		if c.ID == e.Call && f.From == "" && (c.Attempt != e.Attempt || c.Stage != agent.Running) {
			cov.reach.hit(ReturnedIgnored)
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
		cov.reach.hit(Forked)
	case "resumed":
		if at(agent.Gated) {
			cov.reach.hit(TakeoverGated)
		}
		if before.Purpose == agent.ForSummary && before.Phase == agent.Thinking {
			cov.reach.hit(SummaryLost)
		}
	case "canceled":
		if at(agent.Gated) {
			cov.reach.hit(CancelGated)
		}
		if at(agent.Retrying) {
			cov.reach.hit(CancelRetrying)
		}
	}
	cov.notePause(before, after, f)
	if asksPerson(after) && !asksPerson(before) {
		cov.reach.hit(cov.questionSource(after))
	}
	for i := range after.Calls {
		if i < len(before.Calls) && after.Calls[i].Tries > before.Calls[i].Tries {
			cov.reach.hit(ToolRetried)
		}
		if i < len(before.Calls) && after.Calls[i].Again > before.Calls[i].Again {
			cov.reach.hit(AskedElsewhere)
		}
	}
	if after.Fold != before.Fold {
		if before.Fold.Upto > 0 {
			cov.reach.hit(FoldedAgain)
		}
		if after.Fold.Plain {
			cov.reach.hit(FoldedPlain)
		}
		if after.Journal.Shown.Text != "" {
			cov.reach.hit(JournalShown)
		}
	}
}

// questionSource returns the place for the source of a question to a person: the loop, the model, a hook or a resume.
func (cov *coverage) questionSource(after *agent.State) Place {
	q := after.Suspended.Question
	if q.Reason == spec.ResumeUnsafe && q.Call != "" {
		return UnknownOutcome
	}
	i := slices.IndexFunc(after.Calls, func(c agent.Call) bool { return c.ID == q.Call })
	switch {
	case i < 0:
		return AskedByLoop
	case after.Calls[i].Name == "ask_human" && after.Calls[i].Stage == agent.Running:
		return AskedByModel
	}
	return AskedByHook
}

// notePause notes the outcomes of waits at throttles.
func (cov *coverage) notePause(before, after *agent.State, f activation.Fact) {
	if isPaused(after) && !isPaused(before) {
		if after.ClosingReason != "" {
			cov.reach.hit(PausedClosing)
		}
		if after.Purpose == agent.ForSummary {
			cov.reach.hit(PausedSummary)
		}
	}
	if !isPaused(before) {
		return
	}
	switch f.Kind {
	case "resumed":
		cov.reach.hit(PausedTakeover)
	case "canceled":
		cov.reach.hit(PausedCancel)
	case "woke":
		if !isPaused(after) && after.Cancel == nil {
			cov.reach.hit(PatienceEnded)
		}
	}
}
