// Package bounds has the limits of the requests of the control service: how long one may take, how large its reply and
// its errors may be, and what is left out or cut until a list or a text fits.
package bounds

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
)

// ReplyBytes is the maximum size of a list or a transcript: half the maximum size of a
// message.
const ReplyBytes = 512 << 10

// TextBytesMin is the length to which the texts of a transcript are cut before it is
// refused.
const TextBytesMin = 64

// agentsBytesMax is how large a list of agents in a reply or event may be: some 1,000 agents. A larger list would
// not fit the message of the event run.finished, for which clients wait.
const agentsBytesMax = 256 << 10

// FitAgents leaves out agents until the list of a result fits a message. The agents that ask a person come first,
// then the nearest to the root. So the parent of a listed agent that asks no question is listed, too.
func FitAgents(r event.Result) event.Result {
	depths := map[spec.ID]int{} // a parent comes before its children
	for _, a := range r.Agents {
		if a.Parent != nil {
			depths[a.ID] = depths[*a.Parent] + 1
		}
	}
	listed, left := FitList(r.Agents, func(a event.AgentResult) int {
		if a.Query != nil {
			return 0
		}
		return depths[a.ID]
	})
	r.Agents, r.AgentsLeftOut = listed, r.AgentsLeftOut+left
	return r
}

// FitList keeps the agents of the lowest ranks, in their order, as many as agentsBytesMax allows.
func FitList[T any](list []T, rank func(T) int) (kept []T, left int) {
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

// TruncateText keeps the first bytes of a text and says how many there were.
func TruncateText(s string, most int) string {
	return clip.Marked(s, most, fmt.Sprintf("… (%d bytes in all)", len(s)))
}

// BuildTimeout is how long the build of a run has one of the node's slots for it: longer than an MCP server may take to
// start. A build that takes longer goes on without a slot, and opens no run.
const BuildTimeout = time.Minute

// RequestTimeout bounds one request.
const RequestTimeout = 12 * time.Second

// ReplyReserve is what a request keeps of its time for the reply.
const ReplyReserve = 2 * time.Second

// ErrorBytesMax is the maximum size of an error's text in a reply: the text may quote the
// request.
const ErrorBytesMax = 4 << 10
