package agent

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// transcript is the conversation of an agent. Messages are only appended, so a prefix never changes,
// except that a message may become a tombstone.
type transcript struct {
	// History holds exactly what was appended, in order.
	History      []model.Message
	Recalled     int   // messages of History that are of an earlier one
	UserMessages []int // messages of History that people said after the task
	Withheld     []int // messages of History that no result may show

	tape *sharedTape // of History
}

// sharedTape says how much of a backing array of transcripts is in use. It is not part
// of a State's meaning: without it, extend copies.
type sharedTape struct{ taken int }

const tapeStart = 8

// extend appends a message without affecting other transcripts. Transcripts share a
// backing array, and each index of it is written once: the first to reach an
// index claims it, another future copies.
func (t transcript) extend(m model.Message) transcript {
	n := len(t.History)
	if t.tape == nil || t.tape.taken != n || cap(t.History) == n { //mutant:no-clip
		grown := make([]model.Message, n, 2*n+tapeStart)
		copy(grown, t.History)
		t.History, t.tape = grown, &sharedTape{taken: n}
	}
	t.tape.taken++
	t.History = append(t.History, m)
	return t
}

// newest is the message that was appended last.
func (t transcript) newest() model.Message { return t.History[len(t.History)-1] }

// withTombstone makes the newest message a tombstone.
func (t transcript) withTombstone() transcript {
	t.History = slices.Clone(t.History)
	t.History[len(t.History)-1].Tombstone = true
	return t
}

// lastText is the newest assistant text of the agent's own.
func (t transcript) lastText() string {
	for i, m := range slices.Backward(t.History) {
		if m.Role == model.Assistant && !m.Tombstone && m.Text != "" && !slices.Contains(t.Withheld, i) && i >= t.Recalled {
			return m.Text
		}
	}
	return ""
}

// joinedText is the newest text of the model, joined from the pieces of a reply that was
// cut. Messages of the loop or a hook between two pieces do not separate them; a
// message of a person does.
func (t transcript) joinedText() string {
	var pieces []string
	goesOn := true // what comes next began a piece that was cut
	for i := len(t.History) - 1; i >= t.Recalled; i-- {
		m := t.History[i]
		switch {
		case m.Tombstone:
		case m.Role == model.Assistant && goesOn && len(m.Calls) == 0:
			pieces, goesOn = append(pieces, m.Text), false
		case m.Role != model.User || slices.Contains(t.UserMessages, i):
			i = 0
		case m.Text == continuePrompt:
			goesOn = true
		}
	}
	slices.Reverse(pieces)
	return strings.Join(pieces, "")
}

// sentBefore counts the messages before an index that a prompt may hold.
func (t transcript) sentBefore(upto int) int {
	n := 0
	for _, m := range t.History[:upto] {
		if !m.Tombstone {
			n++
		}
	}
	return n
}

// hasText reports whether a user message before an index has this text.
func (t transcript) hasText(text string, upto int) bool {
	return slices.ContainsFunc(t.History[:upto], func(m model.Message) bool { return m.Role == model.User && m.Text == text })
}

// directionsBefore returns the folded messages that people sent after the task; if they are
// too long, only the newest.
func (t transcript) directionsBefore(upto int) string {
	var said []string
	room := voicesBytesMax
	for _, i := range slices.Backward(t.UserMessages) {
		if i >= upto {
			continue
		}
		text := clip.Ends(t.History[i].Text, room)
		if len(said) > 0 && len(text) < len(t.History[i].Text) && room < voiceBytesMin {
			break
		}
		if said, room = append(said, text), room-len(text); room <= 0 {
			break
		}
	}
	slices.Reverse(said)
	return strings.Join(said, "\n")
}

// tailAt returns the index, not before from, at which the last n messages begin. It keeps calls together
// with their results, and always keeps the user messages after the newest result.
func (t transcript) tailAt(from, n int) int {
	i := len(t.History)
	for i > from && t.History[i-1].Role == model.User {
		i, n = i-1, n-1
	}
	for i > from && n > 0 {
		i--
		if !t.History[i].Tombstone {
			n--
		}
	}
	for i > from && t.answersBefore(i) { //mutant:fold-splits-a-pair
		i--
	}
	return i
}

// answersBefore reports whether message i, or the first message after it that is sent,
// answers calls before it: tombstones may separate the two.
func (t transcript) answersBefore(i int) bool {
	for i < len(t.History) && t.History[i].Tombstone {
		i++
	}
	return i < len(t.History) && t.History[i].Role == model.ToolRole
}

// hasEvidence reports whether the record has a successful result that is the evidence.
func (t transcript) hasEvidence(e spec.Evidence) bool {
	names := map[string]string{}
	for _, m := range t.History {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		for _, r := range m.Results {
			if !r.Error && !m.Tombstone && names[r.Call] == e.Tool && strings.Contains(r.Text, e.Contains) { //mutant:failure-is-evidence
				return true
			}
		}
	}
	return false
}

// ranTools reports whether tools have run since the model last replied, whatever messages came after them.
func (t transcript) ranTools() bool {
	n := len(t.History)
	for n > t.Recalled && t.History[n-1].Role == model.User {
		n--
	}
	return n > t.Recalled && t.History[n-1].Role == model.ToolRole
}

// sentAsIs reports whether every message can be sent, as it is.
func (t transcript) sentAsIs() bool {
	for i, m := range t.History {
		if m.Tombstone || i > 0 && m.Role == model.User && t.History[i-1].Role == model.User { //mutant:plain-tombstones
			return false
		}
	}
	return true
}

// newestReply is the index of the newest reply of the model; the length if there is none.
func (t transcript) newestReply() int {
	for i := len(t.History) - 1; i > 0; i-- {
		if m := t.History[i]; m.Role == model.Assistant && !m.Tombstone {
			return i
		}
	}
	return len(t.History)
}
