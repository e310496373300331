package agent

import (
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
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

// Folding is a compaction in progress: it waits for a reservation, then for a summary.
type Folding struct {
	Upto  int
	Why   spec.Transition // of the turn that waits for it
	As    spec.Transition // of the turn after it
	Tries int             // summaries requested
	Own   bool            // written by the agent's own model, because the other one failed
}

// SummaryTries is how often one summary is requested: a crash may lose the first,
// or its model may be unreachable.
const SummaryTries = 2

// compact begins a compaction if the prompt has grown too large for the window;
// busy is false if the loop continues at once.
func compact(s State, why spec.Transition) (next State, fx []Effect, busy bool) {
	limit := s.threshold()
	if limit == 0 || s.Estimate() <= limit || s.lastTurnFits() {
		return s, nil, false
	}
	rung, counts := s.climb()
	if counts && s.exhausted() {
		return s, nil, false
	}
	if rung == rungAsk {
		s, fx := put(s.climbed(rung, counts), losingContext, spec.NeedsHuman, spec.NeedsHuman, spec.AskHumanForced)
		return s, fx, true
	}
	tails, as := s.tails(rung), spec.Compacted
	if rung == rungPrune {
		as = spec.DeepPruned
	}
	upto, ok := s.cut(tails, s.room(), as)
	if !ok {
		// No fold would shrink the prompt: the compaction fails without a model call.
		if s.exhausted() {
			return s, nil, false
		}
		return s.climbed(rung, true), nil, false
	}
	s = s.climbed(rung, counts)
	s.Folding = Folding{Upto: upto, Why: why, As: as}
	if s.unchecked(upto) {
		s, fx = unsummed(s)
	} else {
		s, fx = askSummary(s)
	}
	return s, fx, true
}

// unchecked reports whether a summary would use messages that the hooks have not seen.
// Hooks decide which messages a provider receives, so no model may write that summary.
func (s State) unchecked(upto int) bool {
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
func (s State) lastTurnFits() bool {
	ending, _ := s.spent()
	return ending != "" && s.Estimate()+s.Task.Limits.Closing <= s.window()
}

// tooLong handles a provider's error that the prompt is too long: the agent makes
// one reactive compaction in its lifetime, then the loop ends. again is false for
// the end. So a model that rejects every prompt is called three times: for the
// turn, for the summary (which it rejects, too), and for the turn again.
func tooLong(s State) (next State, fx []Effect, again bool) {
	if s.Task.LoopOptions.Context.Tail <= 0 || s.Ladder.Reactive || s.exhausted() { //mutant:too-long-for-ever
		return s, nil, false
	}
	size := s.Estimate()
	know := s.sense()
	know.Ceiling = size
	s.Sense = know
	room := size / 2
	if limit := s.threshold(); limit > 0 {
		room = min(room, limit)
	}
	upto, ok := s.cut(s.tails(rungFold), room, spec.ReactiveRetry)
	if !ok {
		return s, nil, false
	}
	s.Ladder.Reactive = true
	s = s.climbed(rungFold, true)
	s.Folding = Folding{Upto: upto, Why: s.Transition, As: spec.ReactiveRetry}
	s, fx = askSummary(s)
	return s, fx, true
}

// tails lists how many messages a rung keeps verbatim: its own number, and fewer
// only if the prompt would not fit otherwise.
func (s State) tails(r Rung) []int {
	c := s.context()
	if r == rungPrune {
		return []int{c.PruneTail, 2, 0}
	}
	return []int{c.Tail, min(c.Tail, c.PruneTail), 2, 0}
}

// room is the highest estimate at which a prompt and its reply fit the window.
func (s State) room() int64 {
	window := s.window()
	return window - min(s.Task.Limits.Output, window/roomMin)
}

// cut computes how many messages to fold. ok is false if no fold would shrink the
// prompt, even with an empty summary.
func (s State) cut(tails []int, room int64, as spec.Transition) (upto int, ok bool) {
	now, ratio := s.guess(s.Prompt()), s.sense().Ratio
	fits := s.Estimate() <= room
	for _, n := range tails {
		at := s.tailAt(s.Fold.Upto, n)
		bare := s.withFold(s.newFold(at, as, "", true))
		size := bare.guess(bare.Prompt())
		if at > s.Fold.Upto && size < now {
			upto, ok = at, true
			if ratio.Apply(size)+s.context().Summary <= room {
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
func (s State) withFold(f Fold) State {
	s.Fold, s.Anchor = f, Anchor{} //mutant:anchor-kept-over-a-fold
	s.Journal = s.Journal.shown(f.Upto)
	return s
}

// summarizer is the model that writes summaries.
func (s State) summarizer() spec.Model {
	if m := s.Task.LoopOptions.Context.Model; m != nil && !s.Folding.Own {
		return *m
	}
	return s.route()
}

// askSummary requests a reservation for the summary.
func askSummary(s State) (State, []Effect) {
	s.Phase, s.Transition, s.Purpose = Leasing, s.Folding.As, ForSummary
	s.Lease++
	s.Folding.Tries++
	r := s.summaryRequest(s.context().Summary)
	// The reservation keeps tokens back for a closing turn of the agent, with the agent's prompt.
	input := max(budget.EnvelopeTokens+budget.Text(r.System)+budget.Message(r.Messages[0]), s.InputBound())
	return s, []Effect{Reserve{Lease: s.Lease, Turn: s.Turn + 1, Ask: budget.Ask{Input: input, Output: r.MaxOutput,
		OutputMin: (r.MaxOutput + 1) / 2, Closing: s.Task.Limits.Closing, Price: s.summarizer().Price.Dearer(s.route().Price)}}}
}

// summaryGranted begins the summary. A grant of only a closing turn is for the
// agent's last answer, not for a summary: it is returned unused.
func summaryGranted(s State, f Granted) (State, []Effect) {
	if f.Closing || f.Output <= 0 {
		return then([]Effect{Settle{Lease: s.Lease, Turn: s.Turn}})(unsummed(s))
	}
	s.Open, s.Grant, s.Phase = true, f, Thinking
	s.publishModelStarted()
	return s, []Effect{s.callModel()}
}

// callSummary requests the summary under the granted reservation.
func (s State) callSummary() CallModel {
	m := s.summarizer()
	r := s.summaryRequest(s.Grant.Output)
	r.Model, r.Temperature, r.Effort = m.Name, m.Temperature, m.Effort
	return CallModel{Lease: s.Lease, Turn: s.Turn + 1, Model: m.Name, Request: r, Purpose: ForSummary}
}

// summarized completes a compaction with the summary that a model wrote. The
// summary is not part of the transcript and costs no turn.
func summarized(s State, r model.Reply) (State, []Effect) {
	s, fx := settleSummary(s, r)
	text := strings.TrimSpace(r.Message.Text)
	bad := text == "" || len(r.Message.Calls) > 0 || r.Stop == model.StopMaxOutput || r.Stop == model.StopRefusal
	switch {
	case s.Cancel != nil:
		return then(fx)(finishCanceled(s))
	case bad:
		return then(fx)(unsummed(s))
	}
	return then(fx)(folded(s, history.Clip(text, s.summaryBytes())))
}

// unsummarized handles a summary call that failed. If another model failed, the
// agent's own model is tried, unless the text is too long for any model.
func unsummarized(s State, f Failed) (State, []Effect) {
	if f.Unbilled {
		f.Reply.UsageKnown, f.Reply.Usage = true, model.Usage{}
	}
	if s.Cancel == nil && s.waits(f) {
		s, fx := releaseReservation(s)
		return then(fx)(refused(s, f))
	}
	s, fx := settleSummary(s, f.Reply)
	switch {
	case s.Cancel != nil:
		return then(fx)(finishCanceled(s))
	case f.Class == model.TooLong:
		return then(fx)(unsummed(s))
	}
	return then(fx)(otherSummary(s))
}

// otherSummary requests the summary from the agent's own model if that was not
// tried yet; otherwise no model writes the summary.
func otherSummary(s State) (State, []Effect) {
	if other := s.Task.LoopOptions.Context.Model != nil && !s.Folding.Own; other && s.Folding.Tries < SummaryTries { //mutant:summary-asked-for-ever
		s.Folding.Own, s.Pause = true, Pause{N: s.Pause.N}
		return askSummary(s)
	}
	return unsummed(s)
}

// lostSummary continues after a crash that lost the summary.
func lostSummary(s State) (State, []Effect) {
	if s.Folding.Tries < SummaryTries {
		return askSummary(s)
	}
	return unsummed(s)
}

// settleSummary closes the reservation of a summary.
func settleSummary(s State, r model.Reply) (State, []Effect) {
	e := Settle{Lease: s.Lease, Usage: r.Usage, Turn: s.Turn, Lost: !r.UsageKnown}
	if r.UsageKnown {
		e.Used = s.summarizer().Price.Cost(r.Usage)
		s.Usage, s.Spent = s.Usage.Add(r.Usage), s.Spent.Plus(e.Used)
	} else {
		e.Usage = model.Usage{}
	}
	s.Open = false
	return s, []Effect{e}
}

// unsummed folds without a model: the summary consists of lines of the messages themselves.
func unsummed(s State) (State, []Effect) {
	return folded(s, "")
}

// folded applies the fold and continues with the turn that waited for it. A
// model's summary may be no shorter than the messages that it replaces; then lines
// of those messages replace them, or nothing.
func folded(s State, summary string) (State, []Effect) {
	f := s.Folding
	now := s.guess(s.Prompt())
	try := []Fold{s.newFold(f.Upto, f.As, summary, false), s.newFold(f.Upto, f.As, s.outline(f.Upto), true), s.newFold(f.Upto, f.As, "", true)}
	if summary == "" {
		try = try[1:]
	}
	next := s
	for _, fold := range try {
		next = s.withFold(fold)
		if next.guess(next.Prompt()) < now {
			break
		}
	}
	next.Folding, next.Pause = Folding{}, Pause{N: s.Pause.N}
	next.events.publishOnce(contextEvents, compactionOrder, event.KindContextCompacted, event.Compaction{})
	return onward(next, f.As)
}
