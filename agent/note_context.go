package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// context notes folds, rungs of the ladder, and edits of the journal.
func (n *notes) context(before, after State) {
	if after.Journal.Edits != before.Journal.Edits {
		n.add(event.KindJournalUpdated, event.JournalUpdated{Edits: after.Journal.Edits, Sections: changed(before.Journal, after.Journal),
			Bytes: len(after.Journal.whole()), Digest: after.Journal.digest()})
	}
	if after.Ladder.Used != before.Ladder.Used {
		n.add(event.KindRecoveryFired, event.Recovery{Stage: stage(before, after), Used: after.Ladder.Used, Most: spec.RecoveriesMax,
			Tokens: after.Estimate(), Messages: len(after.Prompt()), Window: after.window()})
	}
	if after.Fold.As != "" && after.Fold.Upto != before.Fold.Upto {
		by := "model"
		if after.Fold.Plain {
			by = "software"
		}
		was := after // the same messages, as they would have been sent without the fold
		was.Fold, was.Anchor, was.Journal = before.Fold, before.Anchor, before.Journal
		n.add(event.KindContextCompacted, event.Compaction{How: after.Fold.As, By: by,
			BeforeTokens: was.Estimate(), AfterTokens: after.Estimate(), BeforeMessages: len(was.Prompt()), AfterMessages: len(after.Prompt()),
			Folded: after.Fold.Upto, Window: after.window()})
	}
}

// stage names the recovery that a step has begun. If no model writes the summary,
// the step has also completed it.
func stage(before, after State) string {
	as := after.Folding.As
	if after.Fold.Upto != before.Fold.Upto {
		as = after.Fold.As
	}
	switch {
	case as == spec.ReactiveRetry:
		return "reactive"
	case as == spec.DeepPruned:
		return "deep_prune"
	case as != "":
		return "compact"
	case after.Ladder.Rung == rungAsk:
		return "ask_human"
	}
	return "failed"
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
