package control

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/permission"
)

const (
	questionsKeptMax = 256     // that a node keeps something of
	lostCallsAtOnce  = 16      // logs that are replayed for one request
	lostCallBytesMax = 2 << 10 // of the text of one call
)

// questionCache caches facts about questions that were read from logs, by their keys: a question does not change.
type questionCache[T any] struct {
	mu   sync.Mutex
	kept map[string]T
}

func (q *questionCache[T]) find(key string) (found T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	found, ok = q.kept[key]
	return found, ok
}

// keep drops all others if there are too many.
func (q *questionCache[T]) keep(key string, v T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.kept == nil || len(q.kept) >= questionsKeptMax {
		q.kept = map[string]T{}
	}
	q.kept[key] = v
}

// showLostCalls adds to the questions about calls whose outcome is unknown what the calls are. The questions in the
// logs name their ids only, and are decisions that stay as they were made.
func (c *viewer) showLostCalls(ctx context.Context, list []Question) {
	replays := 0
	for i, q := range list {
		if q.Query.Reason != spec.ResumeUnsafe || q.Query.Call == "" {
			continue
		}
		key := strings.Join([]string{q.RunID, string(q.Agent), q.Query.Call}, " ")
		text, known := c.lostCalls.find(key)
		if !known && replays < lostCallsAtOnce {
			replays++
			if text = c.callText(ctx, q); text != "" {
				c.lostCalls.keep(key, text)
			}
		}
		if text != "" {
			list[i].Query.Question += "\nThe call:\n" + text
		}
	}
}

// callText shows the call of a question as an approval does; "" if the log of the agent cannot be read: the
// question counts without it, too.
func (c *viewer) callText(ctx context.Context, q Question) string {
	at, err := c.views.agentAddress(ctx, q.RunID, q.Agent)
	if err != nil {
		return ""
	}
	s, _, err := replayTranscript(ctx, c.cfg.Post, at)
	if err != nil {
		c.cfg.logger().Warn("the call of a question cannot be read", "run", q.RunID, "agent", q.Agent, "error", err)
		return ""
	}
	for _, m := range slices.Backward(s.History) {
		for _, call := range m.Calls {
			if call.ID == q.Query.Call {
				return clip.Text(strings.TrimSpace(permission.Show(call.Name, call.Args)), lostCallBytesMax)
			}
		}
	}
	return ""
}
