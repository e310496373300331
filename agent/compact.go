package agent

import (
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// Fold is the summary that replaces the beginning of the transcript in prompts.
// The transcript itself keeps every message.
type Fold struct {
	Upto    int             // messages of History that it replaces; it never ends between calls and their results
	Text    string          // the message that replaces them
	Summary string          // the part of Text from which the next fold starts
	Deep    bool            // a deep prune made it
	Plain   bool            // no model wrote the summary: it consists of lines of the messages
	Turn    int             // in which it was made
	As      spec.Transition // why it was made; "" for a recalled one
}

// pendingCompaction is a compaction in progress: it waits for a reservation, then for a summary.
type pendingCompaction struct {
	Upto  int
	Why   spec.Transition // of the turn that waits for it
	As    spec.Transition // of the turn after it
	Tries int             // summaries requested
	Own   bool            // written by the agent's own model, because the other one failed
}

// summaryTries is how often one summary is requested: a crash may lose the first,
// or its model may be unreachable.
const summaryTries = 2

// beginCompaction begins a compaction if the prompt has grown too large for the window;
// busy is false if the loop continues at once.
func beginCompaction(s *State, transition spec.Transition) (next *State, fx []Effect, busy bool) {
	limit := s.contextLimits().threshold()
	if limit == 0 || s.Estimate() <= limit || lastTurnFits(s) {
		return s, nil, false
	}
	rung, counts := s.Ladder.nextRung(s.Turn, s.contextLimits().Within, mayAskPeople(s))
	if counts && s.Ladder.exhausted() {
		return s, nil, false
	}
	if rung == rungAsk {
		s, fx := askPerson(recordRung(s, rung, counts), losingContext, spec.NeedsHuman, spec.NeedsHuman, spec.AskHumanForced)
		return s, fx, true
	}
	tails, as := s.contextLimits().tails(rung), spec.Compacted
	if rung == rungPrune {
		as = spec.DeepPruned
	}
	upto, ok := chooseCut(s, tails, s.contextLimits().room(), as)
	if !ok {
		// No fold would shrink the prompt: the compaction fails without a model call.
		if s.Ladder.exhausted() {
			return s, nil, false
		}
		return recordRung(s, rung, true), nil, false
	}
	s = recordRung(s, rung, counts)
	s.PendingCompaction = pendingCompaction{Upto: upto, Why: transition, As: as}
	if hasUncheckedMessages(s, upto) {
		s, fx = compactWithoutModel(s)
	} else {
		s, fx = askSummary(s)
	}
	return s, fx, true
}

// hasUncheckedMessages reports whether a summary would use messages that the hooks have not seen.
// Hooks decide which messages a provider receives, so no model may write that summary.
func hasUncheckedMessages(s *State, upto int) bool {
	if len(s.hooks.at(spec.HookContext, "")) == 0 && len(s.hooks.at(spec.HookInput, "")) == 0 {
		return false
	}
	seen := len(s.History) // no message after the newest reply was sent yet
	for seen > s.Recalled && s.History[seen-1].Role != model.Assistant {
		seen--
	}
	return upto > seen || seen == s.Recalled
}

// lastTurnFits reports whether the loop is about to take its closing turn and the
// prompt fits as it is, so that no compaction is needed.
func lastTurnFits(s *State) bool {
	ending, _ := s.reachedLimit()
	return ending != "" && s.Estimate()+s.Task.Limits.Closing <= s.contextWindow(&s.Task)
}

// tooLong handles a provider's error that the prompt is too long: the agent makes
// one reactive compaction in its lifetime, then the loop ends. again is false for
// the end. So a model that rejects every prompt is called three times: for the
// turn, for the summary (which it rejects, too), and for the turn again.
func tooLong(s *State) (next *State, fx []Effect, again bool) {
	if s.Task.LoopOptions.Context.Tail <= 0 || s.Ladder.Reactive || s.Ladder.exhausted() { //mutant:too-long-for-ever
		return s, nil, false
	}
	size := s.Estimate()
	know := s.tokenMeasures()
	know.Ceiling = size
	s.Sense = know
	room := size / 2
	if limit := s.contextLimits().threshold(); limit > 0 {
		room = min(room, limit)
	}
	upto, ok := chooseCut(s, s.contextLimits().tails(rungFold), room, spec.ReactiveRetry)
	if !ok {
		return s, nil, false
	}
	s.Ladder.Reactive = true
	s = recordRung(s, rungFold, true)
	s.PendingCompaction = pendingCompaction{Upto: upto, Why: s.Transition, As: spec.ReactiveRetry}
	s, fx = askSummary(s)
	return s, fx, true
}

// chooseCut computes how many messages to fold. ok is false if no fold would shrink the
// prompt, even with an empty summary.
func chooseCut(s *State, tails []int, room int64, as spec.Transition) (upto int, ok bool) {
	now, ratio := guessTokens(s, s.Prompt()), s.tokenMeasures().Ratio
	fits := s.Estimate() <= room
	for _, n := range tails {
		at := s.tailAt(s.Fold.Upto, n)
		w := s.foldWriter(at, as)
		bare := withFold(trialCopy(s), w.newFold("", true))
		size := guessTokens(bare, bare.Prompt())
		if at > s.Fold.Upto && size < now {
			upto, ok = at, true
			if ratio.Apply(size)+s.contextLimits().Summary <= room {
				return upto, true
			}
		}
		if fits {
			break // the prompt is large, but still fits: keep the rung's own tail or do not fold
		}
	}
	return upto, ok
}

// withFold returns the state with a new fold. The size that the provider reported
// belongs to a prompt that no longer exists.
func withFold(s *State, f Fold) *State {
	s.Fold, s.Anchor = f, promptAnchor{} //mutant:anchor-kept-over-a-fold
	s.Journal = s.Journal.withShown(f.Upto)
	return s
}

// askSummary requests a reservation for the summary.
func askSummary(s *State) (*State, []Effect) {
	s.Phase, s.Transition, s.Purpose = Reserving, s.PendingCompaction.As, ForSummary
	s.Reservation++
	s.Allowance = allowance{} // the request gives it back
	s.PendingCompaction.Tries++
	r := summaryRequest(s, s.contextLimits().Summary)
	// The reservation keeps tokens back for a closing turn of the agent, with the agent's prompt.
	input := max(budget.EnvelopeTokens+budget.Text(r.System)+budget.Message(r.Messages[0]), s.inputBound())
	return s, []Effect{newReserve(s, budget.AttemptRequest{Input: input, Output: r.MaxOutput, OutputMin: (r.MaxOutput + 1) / 2,
		Closing: s.Task.Limits.Closing, Price: s.summaryModel(&s.Task, s.PendingCompaction.Own).Price.Dearer(s.currentModel(&s.Task).Price)})}
}

// handleSummaryGranted begins the summary. A grant of only a closing turn is for the
// agent's last answer, not for a summary: it is returned unused.
func handleSummaryGranted(s *State, f Granted) (*State, []Effect) {
	if f.Closing || f.Output <= 0 {
		return prependEffects([]Effect{Settle{Reservation: s.Reservation, Turn: s.Turn}})(compactWithoutModel(s))
	}
	s.Open, s.Grant, s.Phase = true, f, Thinking
	s.events.publishModelStarted(s.attempt())
	return s, []Effect{newModelCall(s)}
}

// summaryRequest is the request for the summary of the compaction in progress.
func summaryRequest(s *State, output int64) model.Request {
	w := s.foldWriter(s.PendingCompaction.Upto, s.PendingCompaction.As)
	return w.request(output, s.summaryModel(&s.Task, s.PendingCompaction.Own).Window)
}

// callSummary requests the summary under the granted reservation.
func callSummary(s *State) CallModel {
	m := s.summaryModel(&s.Task, s.PendingCompaction.Own)
	r := summaryRequest(s, s.Grant.Output)
	r.Model, r.Temperature, r.Effort = m.Name, m.Temperature, m.Effort
	return CallModel{Reservation: s.Reservation, Turn: s.Turn + 1, Model: m.Name, Request: r, Purpose: ForSummary}
}

// handleSummary completes a compaction with the summary that a model wrote. The
// summary is not part of the transcript and costs no turn.
func handleSummary(s *State, r model.Reply) (*State, []Effect) {
	s, fx := settleSummary(s, r)
	text := strings.TrimSpace(r.Message.Text)
	bad := text == "" || len(r.Message.Calls) > 0 || r.Stop == model.StopMaxOutput || r.Stop == model.StopRefusal
	switch {
	case s.Cancel != nil:
		return prependEffects(fx)(finishCanceled(s))
	case bad:
		return prependEffects(fx)(compactWithoutModel(s))
	}
	return prependEffects(fx)(completeCompaction(s, clip.Text(text, s.contextLimits().summaryBytes())))
}

// handleFailedSummary handles a summary call that failed. If another model failed, the
// agent's own model is tried, unless the text is too long for any model.
func handleFailedSummary(s *State, f Failed) (*State, []Effect) {
	if f.Unbilled {
		f.Reply.UsageKnown, f.Reply.Usage = true, model.Usage{}
	}
	if s.Cancel == nil && waitsOut(s, f) {
		s, fx := releaseReservation(s)
		return prependEffects(fx)(waitOutRefusal(s, f))
	}
	s, fx := settleSummary(s, f.Reply)
	switch {
	case s.Cancel != nil:
		return prependEffects(fx)(finishCanceled(s))
	case f.Class == model.TooLong:
		return prependEffects(fx)(compactWithoutModel(s))
	}
	return prependEffects(fx)(otherSummary(s))
}

// otherSummary requests the summary from the agent's own model if that was not
// tried yet; otherwise no model writes the summary.
func otherSummary(s *State) (*State, []Effect) {
	if other := s.Task.LoopOptions.Context.Model != nil && !s.PendingCompaction.Own; other && s.PendingCompaction.Tries < summaryTries { //mutant:summary-asked-for-ever
		s.PendingCompaction.Own, s.failureStreaks = true, s.withoutWait()
		return askSummary(s)
	}
	return compactWithoutModel(s)
}

// lostSummary continues after a crash that lost the summary.
func lostSummary(s *State) (*State, []Effect) {
	if s.PendingCompaction.Tries < summaryTries {
		return askSummary(s)
	}
	return compactWithoutModel(s)
}

// settleSummary closes the reservation of a summary.
func settleSummary(s *State, r model.Reply) (*State, []Effect) {
	e := Settle{Reservation: s.Reservation, Usage: r.Usage, Turn: s.Turn, Lost: !r.UsageKnown}
	if r.UsageKnown {
		e.Used = s.summaryModel(&s.Task, s.PendingCompaction.Own).Price.Cost(r.Usage)
		s.Usage, s.Spent = s.Usage.Add(r.Usage), s.Spent.Plus(e.Used)
	} else {
		e.Usage = model.Usage{}
	}
	s.Open = false
	return s, []Effect{e}
}

// compactWithoutModel folds without a model: the summary consists of lines of the messages themselves.
func compactWithoutModel(s *State) (*State, []Effect) {
	return completeCompaction(s, "")
}

// completeCompaction applies the fold and continues with the turn that waited for it. A
// model's summary may be no shorter than the messages that it replaces; then lines
// of those messages replace them, or nothing.
func completeCompaction(s *State, summary string) (*State, []Effect) {
	f := s.PendingCompaction
	now := guessTokens(s, s.Prompt())
	w := s.foldWriter(f.Upto, f.As)
	try := []Fold{w.newFold(summary, false), w.newFold(w.outline(), true), w.newFold("", true)}
	if summary == "" {
		try = try[1:]
	}
	next := s
	for _, fold := range try {
		next = withFold(trialCopy(s), fold)
		if guessTokens(next, next.Prompt()) < now {
			break
		}
	}
	next.PendingCompaction, next.failureStreaks = pendingCompaction{}, next.withoutWait()
	next.events.publishOnce(contextEvents, compactionOrder, event.KindContextCompacted, event.Compaction{})
	return beginTurn(next, f.As)
}
