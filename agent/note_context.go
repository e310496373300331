package agent

import "slices"

// Data of the notes about the context.
type (
	// Compaction is context.compacted: how the prompt was before and after.
	Compaction struct {
		How            Transition `json:"how"`
		By             string     `json:"by"` // who summarized: model, or software
		BeforeTokens   int64      `json:"before_tokens"`
		AfterTokens    int64      `json:"after_tokens"`
		BeforeMessages int        `json:"before_messages"`
		AfterMessages  int        `json:"after_messages"`
		Folded         int        `json:"folded"` // messages of the transcript that are folded now
		Window         int64      `json:"window,omitempty"`
	}
	// Recovery is recovery.fired: one of the few recoveries that a loop has.
	Recovery struct {
		Stage    string `json:"stage"` // compact, deep_prune, ask_human, reactive, or failed
		Used     int    `json:"used"`
		Most     int    `json:"most"`
		Tokens   int64  `json:"tokens"`
		Messages int    `json:"messages"`
		Window   int64  `json:"window,omitempty"`
	}
	// JournalUpdated is journal.updated.
	JournalUpdated struct {
		Edits    int      `json:"edits"` // so far
		Sections []string `json:"sections"`
		Bytes    int      `json:"bytes"`
		Digest   string   `json:"digest,omitempty"`
	}
)

// context tells of folds, of rungs of the ladder, and of edits of the journal.
func (n *notes) context(before, after State) {
	if after.Journal.Edits != before.Journal.Edits {
		n.add("journal.updated", JournalUpdated{Edits: after.Journal.Edits, Sections: changed(before.Journal, after.Journal),
			Bytes: len(after.Journal.whole()), Digest: after.Journal.digest()})
	}
	if after.Ladder.Used != before.Ladder.Used {
		n.add("recovery.fired", Recovery{Stage: stage(before, after), Used: after.Ladder.Used, Most: RecoveriesMax,
			Tokens: after.Estimate(), Messages: len(after.Prompt()), Window: after.window()})
	}
	if after.Fold.As != "" && after.Fold.Upto != before.Fold.Upto {
		by := "model"
		if after.Fold.Plain {
			by = "software"
		}
		was := after // the same messages, as they would have been sent without the fold
		was.Fold, was.Anchor, was.Journal = before.Fold, before.Anchor, before.Journal
		n.add("context.compacted", Compaction{How: after.Fold.As, By: by,
			BeforeTokens: was.Estimate(), AfterTokens: after.Estimate(), BeforeMessages: len(was.Prompt()), AfterMessages: len(after.Prompt()),
			Folded: after.Fold.Upto, Window: after.window()})
	}
}

// stage names the recovery that a step has begun. Where no model is asked for a
// summary, it has ended it, too.
func stage(before, after State) string {
	as := after.Folding.As
	if after.Fold.Upto != before.Fold.Upto {
		as = after.Fold.As
	}
	switch {
	case as == ReactiveRetry:
		return "reactive"
	case as == DeepPruned:
		return "deep_prune"
	case as != "":
		return "compact"
	case after.Ladder.Rung == rungAsk:
		return "ask_human"
	}
	return "failed"
}

// changed lists the sections of a journal that are no longer what they were.
func changed(before, after Journal) []string {
	var names []string
	for _, s := range journalSections {
		if s.text != nil && *s.text(&before) != *s.text(&after) || s.list != nil && !slices.Equal(*s.list(&before), *s.list(&after)) {
			names = append(names, s.name)
		}
	}
	return names
}

// calling is the model that a lease is for.
func (s State) calling() string {
	if s.Purpose == ForSummary {
		return s.summarizer().Name
	}
	return s.route().Name
}
