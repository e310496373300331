package agent

import (
	"strings"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// Fold is what stands for the beginning of the transcript in prompts. The
// transcript itself keeps every message.
type Fold struct {
	Upto    int        // messages of History that are folded; never between calls and their results
	Text    string     // the message that stands for them
	Summary string     // the part of Text that the next fold begins with
	Deep    bool       // it was made by a deep prune
	Plain   bool       // no model wrote the summary: it is cut out of the messages
	Turn    int        // when
	As      Transition // why; "" where it was recalled
}

// Folding is a compaction under way: it waits for a lease, then for a summary.
type Folding struct {
	Upto  int
	Why   Transition // of the turn that waits for it
	As    Transition // of the turn after it
	Tries int        // summaries asked for
	Own   bool       // by the agent's own model, because the other one failed
}

// SummaryTries is how often one summary is asked for: a crash loses the first,
// or its model cannot be reached.
const SummaryTries = 2

// compact begins a compaction where the prompt has grown too large for the
// window; busy is false where the loop goes on at once.
func compact(s State, why Transition) (next State, fx []Effect, busy bool) {
	limit := s.threshold()
	if limit == 0 || s.Estimate() <= limit || s.lastTurnFits() {
		return s, nil, false
	}
	rung, counts := s.climb()
	if counts && s.exhausted() {
		return s, nil, false
	}
	if rung == rungAsk {
		s, fx := put(s.climbed(rung, counts), losingContext, NeedsHuman, NeedsHuman, AskHumanForced)
		return s, fx, true
	}
	tails, as := s.tails(rung), Compacted
	if rung == rungPrune {
		as = DeepPruned
	}
	upto, ok := s.cut(tails, s.room(), as)
	if !ok {
		// It would not shrink the prompt: failed, without asking a model.
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

// unchecked: hooks decide what a provider is sent, and they have not seen all
// that a summary would be made from. Then no model is told of it.
func (s State) unchecked(upto int) bool {
	if len(s.hooksAt(HookContext, "")) == 0 && len(s.hooksAt(HookInput, "")) == 0 {
		return false
	}
	seen := len(s.History) // behind the newest reply nothing was sent yet
	for seen > s.Recalled && s.History[seen-1].Role != model.Assistant {
		seen--
	}
	return upto > seen || seen == s.Recalled
}

// lastTurnFits: the loop is about to take its closing turn, which needs no
// compaction if it fits as it is.
func (s State) lastTurnFits() bool {
	ending, _ := s.spent()
	return ending != "" && s.Estimate()+s.Task.Limits.Closing <= s.window()
}

// tooLong takes the provider's word that the prompt does not fit: one reactive
// compaction in the life of the agent, then the end. again is false for the end.
// So a model that never takes a prompt is called three times: the turn, the
// summary (which it does not take either), and the turn again.
func tooLong(s State) (next State, fx []Effect, again bool) {
	if s.Task.Manners.Context.Tail <= 0 || s.Ladder.Reactive || s.exhausted() { //mutant:too-long-for-ever
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
	upto, ok := s.cut(s.tails(rungFold), room, ReactiveRetry)
	if !ok {
		return s, nil, false
	}
	s.Ladder.Reactive = true
	s = s.climbed(rungFold, true)
	s.Folding = Folding{Upto: upto, Why: s.Transition, As: ReactiveRetry}
	s, fx = askSummary(s)
	return s, fx, true
}

// tails are how many messages a rung keeps verbatim: its own number, and fewer
// only where the prompt would not fit otherwise.
func (s State) tails(r Rung) []int {
	c := s.context()
	if r == rungPrune {
		return []int{c.PruneTail, 2, 0}
	}
	return []int{c.Tail, min(c.Tail, c.PruneTail), 2, 0}
}

// room is the estimate up to which a prompt and a reply fit the window.
func (s State) room() int64 {
	window := s.window()
	return window - min(s.Task.Limits.Output, window/roomMin)
}

// cut finds how much to fold. It is not ok where no fold would shrink the
// prompt, even one without a word of summary.
func (s State) cut(tails []int, room int64, as Transition) (upto int, ok bool) {
	now, ratio := s.guess(s.Prompt()), s.sense().Ratio
	fits := s.Estimate() <= room
	for _, n := range tails {
		at := s.tailAt(n)
		bare := s.withFold(s.newFold(at, as, "", true))
		size := bare.guess(bare.Prompt())
		if at > s.Fold.Upto && size < now {
			upto, ok = at, true
			if ratio.Apply(size)+s.context().Summary <= room {
				return upto, true
			}
		}
		if fits {
			break // it is large, and no emergency: the rung's own tail or none
		}
	}
	return upto, ok
}

// tailAt is where the last n messages begin. Calls and results stay together,
// and what was said to the agent after the last of them is always kept.
func (s State) tailAt(n int) int {
	i := len(s.History)
	for i > s.Fold.Upto && s.History[i-1].Role == model.User {
		i, n = i-1, n-1
	}
	for i > s.Fold.Upto && n > 0 {
		i--
		if !s.History[i].Tombstone {
			n--
		}
	}
	for i > s.Fold.Upto && s.answered(i) { //mutant:fold-splits-a-pair
		i--
	}
	return i
}

// answered reports whether the message i, or the first after it that is sent,
// answers calls before it: struck messages may lie between the two.
func (s State) answered(i int) bool {
	for i < len(s.History) && s.History[i].Tombstone {
		i++
	}
	return i < len(s.History) && s.History[i].Role == model.ToolRole
}

// withFold is the state in which a fold stands. What the provider reported was
// about a prompt that is no more.
func (s State) withFold(f Fold) State {
	s.Fold, s.Anchor = f, Anchor{} //mutant:anchor-kept-over-a-fold
	s.Journal = s.Journal.shown(f.Upto)
	return s
}

// summarizer is the model that writes summaries.
func (s State) summarizer() Model {
	if m := s.Task.Manners.Context.Model; m != nil && !s.Folding.Own {
		return *m
	}
	return s.route()
}

// askSummary asks for a lease for the summary.
func askSummary(s State) (State, []Effect) {
	s.Phase, s.Transition, s.Purpose = Leasing, s.Folding.As, ForSummary
	s.Lease++
	s.Folding.Tries++
	r := s.summaryRequest(s.context().Summary)
	// What it keeps back is for a closing turn of the agent, with the agent's prompt.
	input := max(budget.EnvelopeTokens+budget.Text(r.System)+budget.Message(r.Messages[0]), s.InputBound())
	return s, []Effect{Reserve{Lease: s.Lease, Turn: s.Turn + 1, Ask: budget.Ask{Input: input, Output: r.MaxOutput,
		OutputMin: (r.MaxOutput + 1) / 2, Closing: s.Task.Limits.Closing, Price: s.summarizer().Price.Dearer(s.route().Price)}}}
}

// summaryGranted begins the summary. A grant of a closing turn only is for the
// agent's last word, not for a summary: it goes back unused.
func summaryGranted(s State, f Granted) (State, []Effect) {
	if f.Closing || f.Output <= 0 {
		return then([]Effect{Settle{Lease: s.Lease, Turn: s.Turn}})(unsummed(s))
	}
	s.Open, s.Grant, s.Phase = true, f, Thinking
	return s, []Effect{s.callModel()}
}

// callSummary asks for the summary under the lease that was granted.
func (s State) callSummary() CallModel {
	m := s.summarizer()
	r := s.summaryRequest(s.Grant.Output)
	r.Model, r.Temperature, r.Effort = m.Name, m.Temperature, m.Effort
	return CallModel{Lease: s.Lease, Turn: s.Turn + 1, Model: m.Name, Request: r, Purpose: ForSummary}
}

// summarized ends a compaction with the summary that a model wrote. It is no
// part of the transcript, and costs no turn.
func summarized(s State, r model.Reply) (State, []Effect) {
	s, fx := s.settleSummary(r)
	text := strings.TrimSpace(r.Message.Text)
	bad := text == "" || len(r.Message.Calls) > 0 || r.Stop == model.StopMaxOutput || r.Stop == model.StopRefusal
	switch {
	case s.Cancel != nil:
		return then(fx)(finishCanceled(s))
	case bad:
		return then(fx)(unsummed(s))
	}
	return then(fx)(folded(s, clip(text, s.summaryBytes())))
}

// unsummarized takes a summary that failed. Where it was another model's, the
// agent's own is tried, unless the text is too long for any.
func unsummarized(s State, f Failed) (State, []Effect) {
	if f.Unbilled {
		f.Reply.UsageKnown, f.Reply.Usage = true, model.Usage{}
	}
	if s.Cancel == nil && s.waits(f) {
		s, fx := s.unused()
		return then(fx)(refused(s, f))
	}
	s, fx := s.settleSummary(f.Reply)
	switch {
	case s.Cancel != nil:
		return then(fx)(finishCanceled(s))
	case f.Class == model.TooLong:
		return then(fx)(unsummed(s))
	}
	return then(fx)(otherSummary(s))
}

// otherSummary asks the agent's own model for the summary, if it was not asked
// yet; else no model writes it.
func otherSummary(s State) (State, []Effect) {
	if other := s.Task.Manners.Context.Model != nil && !s.Folding.Own; other && s.Folding.Tries < SummaryTries { //mutant:summary-asked-for-ever
		s.Folding.Own, s.Pause = true, Pause{N: s.Pause.N}
		return askSummary(s)
	}
	return unsummed(s)
}

// lostSummary goes on after a crash that took the summary with it.
func lostSummary(s State) (State, []Effect) {
	if s.Folding.Tries < SummaryTries {
		return askSummary(s)
	}
	return unsummed(s)
}

// settleSummary closes the lease of a summary.
func (s State) settleSummary(r model.Reply) (State, []Effect) {
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

// unsummed folds without a model: lines of the messages themselves.
func unsummed(s State) (State, []Effect) {
	return folded(s, "")
}

// folded puts the fold in place and goes on to the turn that has waited. What
// a model wrote may be no shorter than what it stands for: then lines of the
// messages stand there, or nothing.
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
	return onward(next, f.As)
}
