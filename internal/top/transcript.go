package top

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model"
)

// transcript is the known messages of the chosen agent.
type transcript struct {
	read     bool
	stale    bool // the agent has a message that is not here
	messages []model.Message
	folds    []client.Fold
	omitted  int    // older messages, for which there is no room
	writing  string // the end of the reply that arrives
	unfold   bool   // calls and results are shown whole
	problem  string

	drawn bool // lines are those of the messages and of the width
	lines []string
	turns []int // of each line: the turn of the agent that it belongs to; 0: one before its first
	head  int   // lines above those
}

// transcriptDoc is the node's answer.
type transcriptDoc struct {
	Messages []model.Message
	Folds    []client.Fold
}

// addEvent notes what an event says about the messages of the agent.
func (t *transcript) addEvent(e client.Event, agent string) {
	if e.Agent != agent {
		return
	}
	if e.Kind == event.KindMessageDelta {
		t.writing += client.DataOf[event.Delta](e).Text
		t.writing = strings.Clone(t.writing[max(0, len(t.writing)-writingBytesMax):])
		return
	}
	if e.Kind == event.KindMessageReasoning || e.Kind == event.KindToolProgress {
		return
	}
	t.stale = true
	// the deltas of a reply stay until its message is read
	if e.Kind != event.KindMessageAssistant && e.Kind != event.KindModelFinished {
		t.writing = ""
	}
}

// take takes the messages that a node has sent: the newest, as far as there is room.
func (t *transcript) take(raw json.RawMessage) {
	doc, err := decode[transcriptDoc](raw)
	t.read, t.stale, t.drawn, t.problem = true, false, false, ""
	if err != nil {
		t.problem = "the transcript does not decode: " + err.Error()
		return
	}
	t.messages, t.folds, t.omitted = doc.Messages, doc.Folds, 0
	left := transcriptBytesMax
	for i, m := range slices.Backward(doc.Messages) {
		if left -= clipMessage(&doc.Messages[i]); left < 0 {
			t.messages, t.omitted = slices.Clone(doc.Messages[i+1:]), i+1
			break
		}
		_ = m
	}
	t.writing = ""
}

// clipMessage bounds the texts of a message, and returns their size.
func clipMessage(m *model.Message) (size int) {
	shorten := func(text *string) {
		if n := len(*text); n > textBytesMax {
			*text = clip.Prefix(*text, textBytesMax) + fmt.Sprintf("\n… %d bytes more: troupe transcript --all", n-textBytesMax)
		}
		*text = strings.Clone(*text)
		size += len(*text)
	}
	shorten(&m.Text)
	for i := range m.Calls {
		shorten(&m.Calls[i].Args)
	}
	for i := range m.Results {
		shorten(&m.Results[i].Text)
	}
	return size
}

const (
	foldedArgs    = 200 // bytes of a call that is folded
	foldedResults = 6   // lines of a result that is folded
)

// transcriptText returns the text of the view.
func transcriptText(m *Model) []string {
	t := &m.run.transcript
	if !t.drawn {
		t.lines, t.drawn = t.draw(m.style, m.width, m.run.tree().RepliedTurn(m.run.agent)), true
	}
	lines := slices.Clone(t.lines)
	head := m.style.Bold(cleanLine(m.run.tree().AgentName(m.run.agent))) + " " + m.style.Dim("("+cleanLine(m.run.agent)+")")
	above := slices.Concat([]string{head}, m.handoffLines())
	lines, t.head = slices.Insert(lines, 0, above...), len(above)
	switch {
	case t.problem != "":
		lines = append(lines, "", m.style.Red(cleanLine(t.problem)))
	case m.run.agent == "":
		lines = append(lines, "", m.style.Dim("no agent has started yet"))
	case !t.read:
		lines = append(lines, "", m.style.Dim("reading …"))
	}
	if text := strings.TrimSpace(term.CleanText(strings.ToValidUTF8(t.writing, ""))); text != "" {
		lines = append(lines, "", m.style.Cyan("assistant")+m.style.Dim("  writes"))
		lines = append(lines, term.Wrap(text, m.width)...)
	}
	return lines
}

// handoffLines say what the chosen agent has to do with handoffs.
func (m *Model) handoffLines() (lines []string) {
	tree := m.run.tree()
	for _, h := range tree.Handoffs {
		switch m.run.agent {
		case h.Taker:
			lines = append(lines, m.style.Yellow("── "+tree.DescribeTaken(h)))
		case h.Giver:
			lines = append(lines, m.style.Yellow("── "+tree.DescribeGiven(h)))
		}
	}
	return lines
}

// draw returns the messages as lines.
func (t *transcript) draw(s term.Style, width, turn int) (lines []string) {
	turns := turnsOf(t.messages, turn)
	t.turns = nil
	last := 0
	if t.omitted > 0 {
		lines = append(lines, s.Dim(fmt.Sprintf("%d older messages are not shown: troupe transcript --all", t.omitted)))
	}
	folds := map[int]client.Fold{}
	for _, f := range t.folds {
		folds[f.Upto-t.omitted] = f
	}
	calls := map[string]string{}
	retracted := 0
	for i, msg := range t.messages {
		if f, ok := folds[i]; ok {
			lines = append(lines, "", s.Yellow(fmt.Sprintf("── compacted at turn %d: a summary of %d bytes replaces the messages above", f.Turn, len(f.Text))))
		}
		if msg.Tombstone {
			retracted++
			continue
		}
		last = max(last, turns[i])
		lines = append(lines, t.drawMessage(s, msg, calls, width, turns[i])...)
		for len(t.turns) < len(lines) {
			t.turns = append(t.turns, last)
		}
	}
	if retracted > 0 {
		lines = append(lines, "", s.Dim(fmt.Sprintf("%d retracted messages are not shown", retracted)))
	}
	if left := len(lines) - transcriptLinesMax; left > 0 {
		lines = append([]string{s.Dim(fmt.Sprintf("%d older lines are not shown: troupe transcript --all", left))}, lines[left:]...)
		t.turns = append([]int{0}, t.turns[min(left, len(t.turns)):]...)
	}
	return lines
}

// turnsOf returns the turn of each message of the assistant, 0 of imported ones, if the last of them is of a turn. The ids of
// calls begin with their turn.
func turnsOf(messages []model.Message, turn int) []int {
	turns := make([]int, len(messages))
	next := turn + 1
	for i, m := range slices.Backward(messages) {
		if m.Role != model.Assistant || next <= 1 {
			continue
		}
		named := 0
		if len(m.Calls) > 0 {
			word, _, _ := strings.Cut(m.Calls[0].ID, "-")
			named, _ = strconv.Atoi(word) // of another provider's id: no number
		}
		if next--; named > 0 && named < next {
			next = named
		}
		turns[i] = next
	}
	return turns
}

// turnAt returns the turn that a line of the view belongs to.
func (t *transcript) turnAt(line int) int {
	if line -= t.head; line >= 0 && line < len(t.turns) {
		return t.turns[line]
	}
	if line < 0 {
		return 0
	}
	return t.newestTurn()
}

// newestTurn returns the last turn that has a reply; 0: none has.
func (t *transcript) newestTurn() int {
	if len(t.turns) == 0 {
		return 0
	}
	return t.turns[len(t.turns)-1]
}

func (t *transcript) drawMessage(s term.Style, msg model.Message, calls map[string]string, width, turn int) []string {
	role := s.Cyan(cleanLine(string(msg.Role)))
	if turn > 0 {
		role += s.Dim(fmt.Sprintf("  turn %d", turn))
	}
	lines := []string{"", role}
	if text := strings.Trim(term.CleanText(msg.Text), "\n"); text != "" {
		if msg.Role == model.Assistant {
			lines = append(lines, s.Markdown(text, width)...)
		} else {
			lines = append(lines, term.Wrap(text, width)...)
		}
	}
	for _, c := range msg.Calls {
		calls[c.ID] = c.Name
		args := c.Args
		if !t.unfold && len(args) > foldedArgs {
			args = clip.Prefix(args, foldedArgs) + "…"
		}
		for i, l := range term.Wrap("→ "+cleanLine(c.Name)+" "+cleanLine(args), width-2) {
			if i > 0 {
				l = "  " + l
			}
			lines = append(lines, l)
		}
	}
	for _, r := range msg.Results {
		lines = append(lines, t.drawResult(s, r, calls[r.Call], width)...)
	}
	return lines
}

func (t *transcript) drawResult(s term.Style, r model.ToolResult, tool string, width int) []string {
	mark := "←"
	if r.Error {
		mark = s.Red("✗")
	}
	lines := []string{mark + " " + s.Dim(cleanLine(tool))}
	text := colorDiff(s, term.CutLines(strings.Trim(term.CleanText(r.Text), "\n"), width-2))
	left := 0
	if !t.unfold && len(text) > foldedResults {
		left, text = len(text)-foldedResults, text[:foldedResults]
	}
	for _, l := range text {
		lines = append(lines, "  "+l)
	}
	if left > 0 {
		lines = append(lines, "  "+s.Dim(fmt.Sprintf("… %d more lines: e", left)))
	}
	return lines
}

// colorDiff colours the lines of a text that a difference adds and removes.
func colorDiff(s term.Style, lines []string) []string {
	for i, l := range lines {
		switch {
		case strings.HasPrefix(l, "+"):
			lines[i] = s.Green(l)
		case strings.HasPrefix(l, "-"):
			lines[i] = s.Red(l)
		}
	}
	return lines
}
