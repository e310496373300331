package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// Order of the events about the context. A step has at most one of each.
const (
	journalOrder = iota
	recoveryOrder
	compactionOrder
)

// recoveryStage names the recovery that a step has begun. If no model writes the summary,
// the step has also completed it.
func (s State) recoveryStage(before State) string {
	as := s.Folding.As
	if s.Fold.Upto != before.Fold.Upto {
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
		return "ask_human"
	}
	return "failed"
}

// compaction compares the prompt with the same messages as they would have been sent without the fold.
func (s State) compaction(before State) event.Compaction {
	by := "model"
	if s.Fold.Plain {
		by = "software"
	}
	was := s
	was.Fold, was.Anchor, was.Journal = before.Fold, before.Anchor, before.Journal
	return event.Compaction{How: s.Fold.As, By: by,
		BeforeTokens: was.Estimate(), AfterTokens: s.Estimate(), BeforeMessages: len(was.Prompt()), AfterMessages: len(s.Prompt()),
		Folded: s.Fold.Upto, Window: s.window()}
}

// changed lists the sections of a journal that an edit has changed.
func changed(before, after Journal) []string {
	var names []string
	for _, s := range journalSections {
		if s.text != nil && *s.text(&before) != *s.text(&after) || s.list != nil && !slices.Equal(*s.list(&before), *s.list(&after)) {
			names = append(names, s.name)
		}
	}
	return names
}

// calling is the model that the reservation is for.
func (s State) calling() string {
	if s.Purpose == ForSummary {
		return s.summarizer().Name
	}
	return s.route().Name
}
