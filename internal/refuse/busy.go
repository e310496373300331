package refuse

import (
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
)

// ErrClosing refuses a request that comes while the node closes.
var ErrClosing = &client.Error{Code: client.CodeUnavailable, Text: "this node is closing", Hint: "ask again: another node answers"}

// replayRetry is the pause after which a client asks again for what is still being read.
const replayRetry = time.Second

// ErrReplaying refuses a request whose time ended before the logs were read.
var ErrReplaying = &client.Error{Code: client.CodeLimit, Text: "the logs of the run are still being read", Hint: "ask again in a moment: the node keeps what it has read", Retry: replayRetry}

// JoinWords lists words as a hint shows them.
func JoinWords[T ~string](list []T) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}

// RoomHint is what makes room in stores in which retention cannot.
const RoomHint = "`troupe prune --older-than 1h --yes` removes runs that have ended, `troupe cancel RUN` ends those that work or are parked, which can then go; a larger disk or larger limits of the streams give more room (docs/operating.md)"

// RetryAfter is when a client that was refused may retry.
const RetryAfter = 250 * time.Millisecond

// ErrBusy refuses a request that found no turn.
var ErrBusy = &client.Error{Code: client.CodeLimit, Text: "too many requests of this verb at once", Hint: "ask again in a moment", Retry: RetryAfter}

// PolicyHint says how a policy is checked.
const PolicyHint = "`troupe policy test FILE` checks a policy; see docs/policy.md"

// ContextHint says how the context of a run is shown.
const ContextHint = "`troupe context RUN` shows the layers and tools; see docs/context.md"
