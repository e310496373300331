package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// The tools of the journal. The loop answers them itself: they change only its own
// state, so a replay restores the journal.
const (
	journalGet    = "get_run_journal"
	journalUpdate = "update_run_journal"
	journalAppend = "append_run_journal_entry"
)

// JournalTools describes the tools of the run journal, for code that offers them.
// The loop answers them if LoopOptions.Journal is set.
func JournalTools() []model.ToolSpec {
	lists, texts := map[string]any{}, map[string]any{}
	properties := map[string]any{}
	for _, s := range journalSections {
		if s.text != nil {
			texts[s.name] = map[string]string{"type": "string"}
		} else {
			lists[s.name] = map[string]any{"type": "array", "items": map[string]string{"type": "string"}}
		}
	}
	maps.Copy(properties, texts)
	maps.Copy(properties, lists)
	return []model.ToolSpec{
		{Name: journalGet, Class: model.Read, Poll: true, Description: "Read your run journal.", Schema: `{"type":"object"}`},
		{Name: journalUpdate, Class: model.Read, Poll: true, Schema: objectSchema(properties),
			Description: "Set sections of your run journal: working memory that outlives the conversation. A list replaces the whole list."},
		{Name: journalAppend, Class: model.Read, Poll: true, Description: "Add one entry to a list of your run journal.",
			Schema: objectSchema(map[string]any{"entry": map[string]string{"type": "string"},
				"section": map[string]any{"type": "string", "enum": slices.Sorted(maps.Keys(lists))}}, "section", "entry")},
	}
}

func objectSchema(properties map[string]any, required ...string) string {
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		panic("agent: a schema of ours does not encode: " + err.Error())
	}
	return string(raw)
}

// callJournal answers a call of a journal tool.
func callJournal(s *State, c Call) (*State, Call) {
	j, err := s.Journal.applyCall(c.Name, c.Args)
	if err != nil {
		return s, c.fail(err.Error() + "; the journal was not changed")
	}
	s = editJournal(s, j)
	text := j.fullText()
	if c.Name != journalGet {
		text = "noted"
	} else if text == "" {
		text = "the journal is empty; its sections are: " + sectionNames(false)
	}
	return s, c.end(model.ToolResult{Text: text})
}

// applyCall executes a call of a journal tool. On error the journal stays unchanged.
func (j Journal) applyCall(tool, args string) (Journal, error) {
	changed := j
	var err error
	switch tool {
	case journalUpdate:
		changed, err = j.setSections(args)
	case journalAppend:
		changed, err = j.addEntry(args)
	default:
		return j, nil
	}
	if err != nil {
		return j, err
	}
	if size := len(changed.fullText()); size > journalBytesMax {
		return j, fmt.Errorf("the journal would have %d bytes, at most %d are allowed: shorten it with %s", size, journalBytesMax, journalUpdate)
	}
	changed.Edits++
	return changed, nil
}

// setSections sets the named sections.
func (j Journal) setSections(args string) (Journal, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(args), &given); err != nil {
		return j, fmt.Errorf("the arguments are not an object of sections")
	}
	if len(given) == 0 {
		return j, fmt.Errorf("no section is named; the sections are: %s", sectionNames(false))
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		section, ok := findSection(name)
		if !ok {
			return j, noSection(name, false)
		}
		if section.text != nil {
			var text string
			if err := json.Unmarshal(given[name], &text); err != nil {
				return j, fmt.Errorf("section %s is a text", name)
			}
			if len(text) > journalTextMax {
				return j, tooMuch(name, len(text), journalTextMax)
			}
			*section.text(&j) = strings.TrimSpace(text)
			continue
		}
		var list []string
		if err := json.Unmarshal(given[name], &list); err != nil {
			return j, fmt.Errorf("section %s is a list of texts; %s adds one entry", name, journalAppend)
		}
		kept, err := checkEntries(name, list)
		if err != nil {
			return j, err
		}
		*section.list(&j) = kept
	}
	return j, nil
}

// addEntry appends one entry to a list.
func (j Journal) addEntry(args string) (Journal, error) {
	var given struct{ Section, Entry string }
	if err := json.Unmarshal([]byte(args), &given); err != nil {
		return j, fmt.Errorf("the arguments are not a section and an entry")
	}
	section, ok := findSection(given.Section)
	if !ok || section.list == nil {
		return j, noSection(given.Section, true)
	}
	if strings.TrimSpace(given.Entry) == "" {
		return j, fmt.Errorf("the entry is empty")
	}
	list, err := checkEntries(given.Section, append(slices.Clone(*section.list(&j)), given.Entry))
	if err != nil {
		return j, err
	}
	*section.list(&j) = list
	return j, nil
}

// checkEntries checks a list: the agent must keep it short.
func checkEntries(name string, list []string) ([]string, error) {
	kept := make([]string, 0, len(list))
	for _, e := range list {
		if len(e) > journalEntryMax {
			return nil, tooMuch("an entry of "+name, len(e), journalEntryMax)
		}
		if e = strings.TrimSpace(e); e != "" {
			kept = append(kept, e)
		}
	}
	if len(kept) > journalEntriesMax {
		return nil, fmt.Errorf("%s would have %d entries, at most %d are allowed: drop what is settled with %s", name, len(kept), journalEntriesMax, journalUpdate)
	}
	return kept, nil
}

func noSection(name string, lists bool) error {
	kind := "section"
	if lists {
		kind = "list"
	}
	return fmt.Errorf("the journal has no %s %q; there are: %s", kind, clip.Text(name, message.NameBytesShown), sectionNames(lists))
}

func tooMuch(what string, size, most int) error {
	return fmt.Errorf("%s has %d bytes, at most %d are allowed", what, size, most)
}
