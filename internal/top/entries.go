package top

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/mailbox"
)

// entriesView is the recorded entries of one log of the run, a page of them.
type entriesView struct {
	logs   []mailbox.Address // those of the run, as far as they were read
	agent  string            // whose log is shown; "super": the supervisor
	starts []uint64          // after which entry each page up to this one begins
	kept   []recordedEntry
	more   bool // there is a page after this one
	read   bool
	stale  bool

	text      []string // of the entry that is open
	textOf    uint64
	textWidth int
}

// recordedEntry is an entry, and what its row says.
type recordedEntry struct {
	client.LogEntry
	kinds, from, epoch, problem string
}

// EntriesPage is the answer to FetchEntries: the logs of the run, and some entries of one of them.
type EntriesPage struct {
	Logs    []mailbox.Address
	Entries []client.LogEntry
	More    bool
}

const superLog = "super"

// showAgent chooses the log of an agent.
func (v *entriesView) showAgent(agent string) {
	if agent != v.agent || len(v.starts) == 0 {
		*v = entriesView{logs: v.logs, agent: agent, starts: []uint64{0}, stale: true}
	}
}

// after is the entry after which the page begins.
func (v *entriesView) after() uint64 {
	if len(v.starts) == 0 {
		return 0
	}
	return v.starts[len(v.starts)-1]
}

// take takes the answer of a node.
func (v *entriesView) take(p EntriesPage) {
	v.logs, v.more, v.read, v.stale, v.textOf = p.Logs, p.More, true, false, 0
	v.kept = v.kept[:0:0]
	for _, e := range p.Entries[:min(len(p.Entries), EntriesMax)] {
		r := recordedEntry{LogEntry: e}
		entry, err := mailbox.Decode(e.Data)
		if err != nil {
			r.problem, r.kinds = err.Error(), "not decoded"
			v.kept = append(v.kept, r)
			continue
		}
		kinds := make([]string, len(entry.Items))
		for i, item := range entry.Items {
			kinds[i] = item.Kind
		}
		r.kinds, r.from = clip.Prefix(strings.Join(kinds, ", "), eventColumnsMax), "a client"
		if entry.From != "" {
			r.from = entry.From.Agent()
		}
		if entry.Epoch != (mailbox.Epoch{}) {
			r.epoch = fmt.Sprintf("%d.%d", entry.Epoch.Lease, entry.Epoch.Start)
		}
		v.kept = append(v.kept, r)
	}
}

// turnPage shows the page after or before this one.
func (v *entriesView) turnPage(forward bool) {
	switch {
	case forward && v.more && len(v.kept) > 0:
		v.starts = append(v.starts, v.kept[len(v.kept)-1].Place)
	case !forward && len(v.starts) > 1:
		v.starts = v.starts[:len(v.starts)-1]
	default:
		return
	}
	v.kept, v.more, v.read, v.stale = nil, false, false, true
}

// nextLog shows the next log of the run.
func (v *entriesView) nextLog() {
	for i, at := range v.logs {
		if at.Agent() == v.agent {
			v.showAgent(v.logs[(i+1)%len(v.logs)].Agent())
			return
		}
	}
	if len(v.logs) > 0 {
		v.showAgent(v.logs[0].Agent())
	}
}

func (v *entriesView) find(key string) (recordedEntry, bool) {
	for _, e := range v.kept {
		if strconv.FormatUint(e.Place, 10) == key {
			return e, true
		}
	}
	return recordedEntry{}, false
}

// entryRows returns the keys of the entries that the filter selects.
func entryRows(m *Model) (keys []string) {
	for _, e := range m.run.entries.kept {
		key := strconv.FormatUint(e.Place, 10)
		if m.matches(key + " " + e.kinds + " " + e.from) {
			keys = append(keys, key)
		}
	}
	return keys
}

const (
	placeColumns = 7
	stampColumns = 12
)

func entryHead(m *Model) string {
	v := &m.run.entries
	name := v.agent
	if name == superLog {
		name = "the supervisor"
	}
	head := "  " + fmt.Sprintf("%*s", placeColumns, "NUMBER") + " " + term.Pad("TIME (UTC)", stampColumns) + " " + term.Pad("FROM", agentColumns) + " " + term.Pad("EPOCH", countColumns) + " " + fmt.Sprintf("%*s", placeColumns, "BYTES") + " KINDS"
	return head + " of " + cleanLine(name)
}

func entryRow(m *Model, e recordedEntry) string {
	kinds := cleanLine(e.kinds)
	if e.problem != "" {
		kinds = m.style.Red(kinds)
	}
	return fmt.Sprintf("%*d", placeColumns, e.Place) + " " + m.style.Dim(term.Pad(time.UnixMilli(e.At).UTC().Format("15:04:05.000"), stampColumns)) + " " + m.style.Cyan(term.Pad(cleanLine(e.from), agentColumns)) + " " +
		term.Pad(e.epoch, countColumns) + " " + fmt.Sprintf("%*d", placeColumns, len(e.Data)) + " " + kinds
}

// entryText shows the selected entry: what it says, and its bytes.
func entryText(m *Model) []string {
	v := &m.run.entries
	e, ok := v.find(m.lists[viewLog].selected())
	if !ok {
		return []string{m.style.Dim("this entry is not on the page any more: esc")}
	}
	if v.textOf != e.Place || v.textWidth != m.width {
		v.text, v.textOf, v.textWidth = drawEntry(m.style, e, m.width), e.Place, m.width
	}
	return v.text
}

func drawEntry(s term.Style, e recordedEntry, width int) []string {
	stamp := time.UnixMilli(e.At).UTC().Format("2006-01-02T15:04:05.000Z")
	lines := []string{s.Bold(fmt.Sprintf("Entry %d", e.Place)) + "  " + s.Dim(cleanLine(fmt.Sprintf("%s  from %s  epoch %s  %d bytes", stamp, e.from, e.epoch, len(e.Data))))}
	if e.problem != "" {
		lines = append(lines, s.Red(cleanLine("the bytes are no entry that this version can decode: "+e.problem)))
	}
	entry, err := mailbox.Decode(e.Data)
	if err == nil {
		for _, item := range entry.Items {
			head := cleanLine(fmt.Sprintf("%s  %d bytes", item.Kind, len(item.Body)))
			if item.N > 0 {
				head += fmt.Sprintf("  caused by entry %d of the sender", item.N)
			}
			lines = append(lines, "", s.Bold(head))
			lines = append(lines, bodyLines(s, item.Body, width)...)
		}
	}
	shown := e.Data[:min(len(e.Data), dumpBytesMax)]
	lines = append(lines, "", s.Bold("Bytes"))
	lines = append(lines, strings.Split(strings.TrimSuffix(hex.Dump(shown), "\n"), "\n")...)
	if left := len(e.Data) - len(shown); left > 0 {
		lines = append(lines, s.Dim(fmt.Sprintf("… %d more bytes: troupe export --logs", left)))
	}
	return lines
}

// bodyLines are the body of a fact as JSON.
func bodyLines(s term.Style, body []byte, width int) []string {
	var value any
	if err := mailbox.Unmarshal(body, &value); err != nil {
		return []string{s.Red(cleanLine(err.Error()))}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return []string{s.Red(cleanLine(err.Error()))}
	}
	whole := strings.TrimSuffix(text.String(), "\n")
	lines := term.CutLines(term.CleanText(clip.Prefix(whole, textBytesMax)), width)
	if left := len(whole) - textBytesMax; left > 0 {
		lines = append(lines, s.Dim(fmt.Sprintf("… %d bytes more: troupe export --logs", left)))
	}
	return lines
}
