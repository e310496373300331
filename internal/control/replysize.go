package control

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// replyBytes is the maximum size of a list or a transcript: half the maximum size of a
// message.
const replyBytes = 512 << 10

// textBytesMin is the length to which the texts of a transcript are cut before it is
// refused.
const textBytesMin = 64

// agentsBytesMax is how large a list of agents in a reply or event may be: some 1,000 agents. A larger list would
// not fit the message of the event run.finished, for which clients wait.
const agentsBytesMax = 256 << 10

// fitAgents leaves out agents until the list of a result fits a message. The agents that ask a person come first,
// then the nearest to the root. So the parent of a listed agent that asks no question is listed, too.
func fitAgents(r event.Result) event.Result {
	depths := map[spec.ID]int{} // a parent comes before its children
	for _, a := range r.Agents {
		if a.Parent != nil {
			depths[a.ID] = depths[*a.Parent] + 1
		}
	}
	listed, left := fitList(r.Agents, func(a event.AgentResult) int {
		if a.Query != nil {
			return 0
		}
		return depths[a.ID]
	})
	r.Agents, r.AgentsLeftOut = listed, r.AgentsLeftOut+left
	return r
}

// fitList keeps the agents of the lowest ranks, in their order, as many as agentsBytesMax allows.
func fitList[T any](list []T, rank func(T) int) (kept []T, left int) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(list[a]) - rank(list[b]) })
	size, fits := 0, 0
	for _, i := range order {
		raw, err := json.Marshal(list[i])
		if size += len(raw) + 1; err != nil || size > agentsBytesMax {
			break
		}
		fits++
	}
	if fits == len(list) {
		return list, 0
	}
	kept = []T{}
	for _, i := range slices.Sorted(slices.Values(order[:fits])) {
		kept = append(kept, list[i])
	}
	return kept, len(list) - fits
}

// fitTranscript cuts long texts, the longest first, until it fits a reply.
func fitTranscript(t Transcript) (Transcript, error) {
	for most := replyBytes / 4; ; most /= 4 {
		raw, err := json.Marshal(t)
		if err != nil {
			return t, fmt.Errorf("control: transcript: %w", err)
		}
		if len(raw) <= replyBytes {
			return t, nil
		}
		if most < textBytesMin {
			return t, &client.Error{Code: client.CodeLimit, Text: "the transcript is too long for one reply", Hint: "`troupe events` reads it in pages"}
		}
		messages := make([]model.Message, len(t.Messages))
		for i, m := range t.Messages {
			m.Text = truncateText(m.Text, most)
			m.Opaque = nil
			m.Calls, m.Results = append([]model.ToolCall{}, m.Calls...), append([]model.ToolResult{}, m.Results...)
			for j := range m.Calls {
				m.Calls[j].Args = truncateText(m.Calls[j].Args, most)
			}
			for j := range m.Results {
				m.Results[j].Text = truncateText(m.Results[j].Text, most)
			}
			messages[i] = m
		}
		t.Messages = messages
		t.Folds = slices.Clone(t.Folds)
		for i := range t.Folds {
			t.Folds[i].Text = truncateText(t.Folds[i].Text, most)
		}
	}
}

// truncateText keeps the first bytes of a text and says how many there were.
func truncateText(s string, most int) string {
	return clip.Marked(s, most, fmt.Sprintf("… (%d bytes in all)", len(s)))
}
