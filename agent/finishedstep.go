package agent

import (
	"cmp"
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/toolname"
)

// finishedStep puts the events of a step in the order in which observers read them, and fills in
// the figures that only the whole step knows.
type finishedStep struct {
	before, after *State
	published     *stepEvents
}

// takeEvents takes the events of the step out of the state after it.
func takeEvents(before, after *State) (*State, []event.Event) {
	published := after.events
	after.events = stepEvents{}
	f := finishedStep{before, after, &published}
	return after, f.events()
}

func (f *finishedStep) events() []event.Event {
	if f.turnEnded() {
		f.published.publish(turnEndEvents, event.KindTurnFinished, f.turnFinished())
	}
	if len(f.published.list) == 0 {
		return nil
	}
	kept := f.published.list[:0]
	for _, e := range f.published.list {
		if !f.overtaken(e) {
			kept = append(kept, e)
		}
	}
	acting := f.before.Phase == Acting
	rank := func(g eventGroup) int {
		if g == callEvents && acting { // results belong to their turn, later messages do not
			return int(messageEvents)*2 - 1
		}
		return int(g) * 2
	}
	slices.SortStableFunc(kept, func(a, b stepEvent) int {
		return cmp.Or(rank(a.group)-rank(b.group), a.order-b.order)
	})
	list := make([]event.Event, len(kept))
	for i, e := range kept {
		if e.Turn == turnOfStep {
			e.Turn = f.turnOf(e.group)
		}
		list[i] = f.withFigures(e)
	}
	return list
}

// turnOf returns the turn of the events of a group.
func (f *finishedStep) turnOf(g eventGroup) int {
	before, after := f.before, f.after
	switch {
	case g == callEvents && before.Phase == Acting, g == loopEvents:
		return before.Turn
	case g >= turnEndEvents && f.turnEnded() && before.Phase == Thinking: // its reply is the first event of that turn
		return before.Turn + 1
	case g >= turnEndEvents && f.turnEnded():
		return before.Turn
	case f.published.entryTurn != nil:
		return *f.published.entryTurn
	case after.Phase == Reserving || after.Phase == Thinking:
		return after.Turn + 1
	}
	return max(before.Turn, after.Turn)
}

// turnEnded reports whether the step has ended a turn.
func (f *finishedStep) turnEnded() bool {
	before, after := f.before, f.after
	moved := before.Phase != after.Phase || before.Reservation != after.Reservation || before.Proposal != after.Proposal
	return moved && before.atWork() && !after.atWork()
}

// turnFinished describes the end of a turn: why the loop continues, unless it ends.
func (f *finishedStep) turnFinished() event.TurnFinished {
	s := f.after
	d := event.TurnFinished{Phase: string(s.Phase)}
	if s.Phase == Reserving || s.Phase == Hooking || s.Suspended.awaitsModel() {
		d.Transition = s.Transition
	}
	if d.Transition == spec.StopVeto {
		d.Policy = s.VetoedBy.Event()
	}
	return d
}

// withFigures fills in the data of an event that depend on the whole step.
func (f *finishedStep) withFigures(e stepEvent) event.Event {
	s := f.after
	switch d := e.Data.(type) {
	case event.ModelFinished:
		if e.Kind == event.KindErrorRaised && s.Phase == Waiting {
			e.Kind = event.KindModelRetry
		}
	case event.GuardrailFired:
		if e.Kind == event.KindGuardrailEscalated {
			e.Data = f.escalation(d)
		}
	case event.LoopDetected:
		d.Level = s.LoopDetection.Level
		e.Data = d
	case event.JournalUpdated:
		e.Data = event.JournalUpdated{Edits: s.Journal.Edits, Sections: changedSections(f.before.Journal, s.Journal),
			Bytes: len(s.Journal.fullText()), Digest: s.Journal.Digest()}
	case event.Recovery:
		e.Data = event.Recovery{Stage: f.recoveryStage(), Used: s.Ladder.Used, Most: spec.RecoveriesMax,
			Tokens: s.Estimate(), Messages: len(s.Prompt()), Window: s.contextWindow(&s.Task)}
	case event.Compaction:
		e.Data = f.compaction()
	case event.ToolCall:
		if e.group == callEvents {
			f.completeCall(&e, d)
		}
	}
	return e.Event
}

// overtaken reports whether the step itself has overtaken an event of a call: a call
// that begins and ends in one step has only its end.
func (f *finishedStep) overtaken(e stepEvent) bool {
	s := f.after
	d, ok := e.Data.(event.ToolCall)
	if !ok || e.group != callEvents || isEnd(e.Kind) {
		return false
	}
	i := s.Calls.find(d.Call)
	if e.Kind == event.KindToolValidated {
		return i < 0 || s.Calls[i].Stage == Ended
	}
	return i < 0 || s.Calls[i].Stage != Running
}

// completeCall completes the end of a call by the result that the step read.
func (f *finishedStep) completeCall(e *stepEvent, d event.ToolCall) {
	if !isEnd(e.Kind) {
		return
	}
	r := f.published.returned
	if d.Call == r.Call {
		d.TookMS, d.Metrics, d.MetricsLost = r.TookMS, r.Metrics.Map(), max(0, r.MetricsLost)
	}
	if d.Call == r.Call && r.Killed {
		d.Synthetic = event.Killed
	}
	switch {
	case f.published.replied && len(f.after.Calls) == 0: // no call of the reply runs
		e.Kind, d.Child = event.KindToolFinished, ""
	case r.Live && d.Call == r.Call && d.Child != "": // its answer is still to come
		e.Kind = event.KindDelegationBackground
	}
	if e.Kind == event.KindToolFinished && r.Size != 0 && d.Call == r.Call {
		d.Ref, d.Size = r.Ref, r.Size
	}
	e.Data = d
}

// escalation fills in how far a guardrail has escalated.
func (f *finishedStep) escalation(d event.GuardrailFired) event.GuardrailFired {
	s := f.after
	d.Level, d.Times = "note", s.HookEffects.Input
	if d.Point == spec.HookOutput {
		d.Times = s.HookEffects.Output
	}
	switch {
	case s.Phase == Done:
		d.Level = "end"
	case d.Times >= guardrailDirective:
		d.Level = "directive"
	}
	return d
}

// recoveryStage names the recovery that a step has begun. If no model writes the summary,
// the step has also completed it.
func (f *finishedStep) recoveryStage() string {
	s := f.after
	as := s.PendingCompaction.As
	if s.Fold.Upto != f.before.Fold.Upto {
		as = s.Fold.As
	}
	switch {
	case as == spec.ReactiveRetry:
		return "reactive"
	case as == spec.DeepPruned:
		return "deep_prune"
	case as != "":
		return "compact"
	case s.Ladder.Rung == rungAsk:
		return toolname.AskHuman
	}
	return "failed"
}

// compaction compares the prompt with the same messages as they would have been sent without the fold.
func (f *finishedStep) compaction() event.Compaction {
	s, before := f.after, f.before
	by := "model"
	if s.Fold.Plain {
		by = "software"
	}
	was := *s
	was.Fold, was.Anchor, was.Journal = before.Fold, before.Anchor, before.Journal
	return event.Compaction{How: s.Fold.As, By: by,
		BeforeTokens: was.Estimate(), AfterTokens: s.Estimate(), BeforeMessages: len(was.Prompt()), AfterMessages: len(s.Prompt()),
		Folded: s.Fold.Upto, Window: s.contextWindow(&s.Task)}
}

// changedSections lists the sections of a journal that an edit has changed.
func changedSections(before, after Journal) []string {
	var names []string
	for _, s := range journalSections {
		if s.text != nil && *s.text(&before) != *s.text(&after) || s.list != nil && !slices.Equal(*s.list(&before), *s.list(&after)) {
			names = append(names, s.name)
		}
	}
	return names
}
