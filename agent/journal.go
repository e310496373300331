package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/model"
)

// Journal is the run journal that the agent edits with its three tools: the facts
// that it would need if everything else were forgotten.
type Journal struct {
	Objective     string   `json:"objective,omitempty"`
	CurrentState  string   `json:"current_state,omitempty"`
	Findings      []string `json:"verified_findings,omitempty"`
	Decisions     []string `json:"decisions,omitempty"`
	Artifacts     []string `json:"artifacts,omitempty"`
	OpenQuestions []string `json:"open_questions,omitempty"`
	Blockers      []string `json:"blockers,omitempty"`
	NextAction    string   `json:"handoff_next_action,omitempty"`

	Edits int `json:"-"` // how often it was changed
	// Shown is the journal as it stood at the last continuation. Prompts hold this version,
	// so that the prefix that was sent stays the same until the next continuation.
	Shown shownJournal `json:"-"`
}

// shownJournal is a journal as prompts show it.
type shownJournal struct {
	At     int    // before which message of History the whole of it stands
	Text   string // all of it, "" while it is empty
	Digest string // at most digestMax characters
}

// Bounds of a journal: it has to fit into a prompt together with everything else.
const (
	journalTextMax    = 1 << 10 // bytes of a text section
	journalEntryMax   = 512     // bytes of an entry of a list
	journalEntriesMax = 24      // of one list
	journalBytesMax   = 12 << 10
	digestMax         = 500 // characters
)

// journalSection is a section of a journal: a text or a list.
type journalSection struct {
	name string
	text func(*Journal) *string
	list func(*Journal) *[]string
}

// journalSections are the sections in the order in which they are shown.
var journalSections = []journalSection{
	{name: "objective", text: func(j *Journal) *string { return &j.Objective }},
	{name: "current_state", text: func(j *Journal) *string { return &j.CurrentState }},
	{name: "verified_findings", list: func(j *Journal) *[]string { return &j.Findings }},
	{name: "decisions", list: func(j *Journal) *[]string { return &j.Decisions }},
	{name: "artifacts", list: func(j *Journal) *[]string { return &j.Artifacts }},
	{name: "open_questions", list: func(j *Journal) *[]string { return &j.OpenQuestions }},
	{name: "blockers", list: func(j *Journal) *[]string { return &j.Blockers }},
	{name: "handoff_next_action", text: func(j *Journal) *string { return &j.NextAction }},
}

// sectionNames lists the sections of a kind: lists only, or all.
func sectionNames(listsOnly bool) string {
	var names []string
	for _, s := range journalSections {
		if s.list != nil || !listsOnly {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, ", ")
}

func findSection(name string) (journalSection, bool) {
	i := slices.IndexFunc(journalSections, func(s journalSection) bool { return s.name == name })
	if i < 0 {
		return journalSection{}, false
	}
	return journalSections[i], true
}

// fullText is the journal as text; "" while nothing is in it.
func (j Journal) fullText() string {
	var b strings.Builder
	for _, s := range journalSections {
		if s.text != nil {
			if text := *s.text(&j); text != "" {
				fmt.Fprintf(&b, "## %s\n%s\n", s.name, text)
			}
			continue
		}
		if list := *s.list(&j); len(list) > 0 {
			fmt.Fprintf(&b, "## %s\n", s.name)
			for _, e := range list {
				fmt.Fprintf(&b, "- %s\n", e)
			}
		}
	}
	return strings.TrimSpace(b.String())
}

// Digest is the journal in at most digestMax characters: objective, state,
// first blocker, next action, and as many of the newest findings as fit.
func (j Journal) Digest() string {
	var parts []string
	add := func(name, text string, n int) {
		if text != "" {
			parts = append(parts, name+": "+shortenLine(text, n))
		}
	}
	add("objective", j.Objective, 110)
	add("state", j.CurrentState, 110)
	if len(j.Blockers) > 0 {
		add("blocker", j.Blockers[0], 70)
	}
	add("next", j.NextAction, 90)
	digest := strings.Join(parts, "\n")
	for _, f := range slices.Backward(j.Findings) {
		more := strings.TrimPrefix(digest+"\nfound: "+shortenLine(f, 70), "\n")
		if len([]rune(more)) > digestMax {
			break
		}
		digest = more
	}
	return digest
}

// shortenLine puts a text on one line of at most n characters.
func shortenLine(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// withShown returns the journal with the version that prompts show from here on.
func (j Journal) withShown(at int) Journal {
	j.Shown = shownJournal{At: at, Text: j.fullText(), Digest: j.Digest()}
	return j
}

// editJournal replaces the journal.
func editJournal(s *State, j Journal) *State {
	if j.Edits != s.Journal.Edits {
		s.events.publishOnce(contextEvents, journalOrder, event.KindJournalUpdated, event.JournalUpdated{})
	}
	s.Journal = j
	return s
}

// systemText is the part of the system prompt after the cache breakpoint: the task's
// own text, then the digest of the journal as of the last compaction, so that a
// prefix that was sent stays the same.
func (j Journal) systemText(own string) string {
	d := own
	if j.Shown.Digest == "" { //mutant:journal-unshown
		return d
	}
	return strings.TrimPrefix(d+"\n\n"+journalDigestHead+j.Shown.Digest, "\n\n") //mutant:journal-shown
}

// The pair of messages by which a journal is shown, and what goes on after it.
const (
	journalDigestHead = "Your run journal in short:\n"
	journalHead       = "Your run journal as it stands:\n\n"
	journalAck        = "I have read my journal and go on from it."
	journalGoOn       = "Go on."
)

// restoreJournal restores the journal of an earlier history with which the agent
// begins: the history brings it, or holds the calls that edited it.
func restoreJournal(s *State) *State {
	if !s.Task.LoopOptions.Journal {
		return s
	}
	if s.Journal.Edits > 0 { // adoptHistory has it
		s.Journal = s.Journal.withShown(len(s.History))
		return s
	}
	calls := map[string]model.ToolCall{}
	for _, m := range s.History {
		if m.Tombstone {
			continue
		}
		for _, c := range m.Calls {
			calls[c.ID] = c
		}
		for _, r := range m.Results {
			if c := calls[r.Call]; !r.Error && s.tools.isJournal(c.Name) {
				j, _ := s.Journal.applyCall(c.Name, c.Args)
				s = editJournal(s, j)
			}
		}
	}
	s.Journal = s.Journal.withShown(len(s.History))
	return s
}

// Args is the run journal as Recalled holds it; "" while it is empty.
func (j Journal) Args() string {
	if j.fullText() == "" {
		return ""
	}
	raw, err := json.Marshal(j)
	if err != nil {
		panic("agent: a journal does not encode: " + err.Error())
	}
	return string(raw)
}
