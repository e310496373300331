package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
)

// reachManners notes the outcomes of the loop options.
func (s *sim) reachManners(before, after *agent.State, f activation.Fact) {
	at := func(stage agent.Stage) bool {
		return slices.ContainsFunc(before.Calls, func(c agent.Call) bool { return c.Stage == stage })
	}
	switch f.Kind {
	case "recalled":
		s.reach.hit(Forked)
	case "resumed":
		if at(agent.Gated) {
			s.reach.hit(TakeoverGated)
		}
		if before.Purpose == agent.ForSummary && before.Phase == agent.Thinking {
			s.reach.hit(SummaryLost)
		}
	case "canceled":
		if at(agent.Gated) {
			s.reach.hit(CancelGated)
		}
		if at(agent.Retrying) {
			s.reach.hit(CancelRetrying)
		}
	}
	s.reachPause(before, after, f)
	if after.Query.Query != "" && before.Query.Query == "" {
		s.reach.hit(s.asker(after))
	}
	for i := range after.Calls {
		if i < len(before.Calls) && after.Calls[i].Tries > before.Calls[i].Tries {
			s.reach.hit(ToolRetried)
		}
		if i < len(before.Calls) && after.Calls[i].Again > before.Calls[i].Again {
			s.reach.hit(AskedElsewhere)
		}
	}
	if after.Fold != before.Fold {
		if before.Fold.Upto > 0 {
			s.reach.hit(FoldedAgain)
		}
		if after.Fold.Plain {
			s.reach.hit(FoldedPlain)
		}
		if after.Journal.Shown.Text != "" {
			s.reach.hit(JournalShown)
		}
	}
}

// asker returns the place for the source of a question to a person: the loop, the model, a hook or a resume.
func (s *sim) asker(after *agent.State) Place {
	if after.Query.Reason == spec.ResumeUnsafe && after.Query.Call != "" {
		return UnknownOutcome
	}
	i := slices.IndexFunc(after.Calls, func(c agent.Call) bool { return c.ID == after.Query.Call })
	switch {
	case i < 0:
		return AskedByLoop
	case after.Calls[i].Name == "ask_human" && after.Calls[i].Stage == agent.Running:
		return AskedByModel
	}
	return AskedByHook
}
