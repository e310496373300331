package event

import "github.com/troupe-run/troupe/agent/spec"

// Compaction is context.compacted: the size of the prompt before and after.
type Compaction struct {
	How            spec.Transition `json:"how"`
	By             string          `json:"by"` // author of the summary: model, or software
	BeforeTokens   int64           `json:"before_tokens"`
	AfterTokens    int64           `json:"after_tokens"`
	BeforeMessages int             `json:"before_messages"`
	AfterMessages  int             `json:"after_messages"`
	Folded         int             `json:"folded"` // messages of the transcript that are folded now
	Window         int64           `json:"window,omitempty"`
}

// Recovery is recovery.fired: one of the few recoveries that a loop has.
type Recovery struct {
	Stage    string `json:"stage"` // compact, deep_prune, ask_human, reactive, or failed
	Used     int    `json:"used"`
	Most     int    `json:"most"`
	Tokens   int64  `json:"tokens"`
	Messages int    `json:"messages"`
	Window   int64  `json:"window,omitempty"`
}

// JournalUpdated is journal.updated.
type JournalUpdated struct {
	Edits    int      `json:"edits"` // so far
	Sections []string `json:"sections"`
	Bytes    int      `json:"bytes"`
	Digest   string   `json:"digest,omitempty"`
}

// ContextChanged is context.changed: from here on, the system prompt or the tools of an agent are others.
type ContextChanged struct {
	By           string         `json:"by,omitempty"`
	Layers       []LayerChanged `json:"layers,omitempty"`
	ToolsAdded   []string       `json:"tools_added,omitempty"`
	ToolsRemoved []string       `json:"tools_removed,omitempty"`
}

// LayerChanged is a part of a system prompt that was set or removed.
type LayerChanged struct {
	Name     string  `json:"name"`
	Owner    string  `json:"owner,omitempty"`
	Agent    spec.ID `json:"agent,omitempty"` // that it was set for; the agents below it inherit it
	Priority int     `json:"priority,omitempty"`
	Bytes    int     `json:"bytes"`
	Removed  bool    `json:"removed,omitempty"`
}
