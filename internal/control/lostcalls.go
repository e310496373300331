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
	lostCallsMax     = 256     // texts that a node keeps
	lostCallsAtOnce  = 16      // logs that are replayed for one request
	lostCallBytesMax = 2 << 10 // of the text of one call
)

// lostCalls keeps the texts of calls whose outcome is unknown: the call of a question does not change.
type lostCalls struct {
	mu    sync.Mutex
	texts map[string]string
}

func (l *lostCalls) find(key string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, ok := l.texts[key]
	return text, ok
}

func (l *lostCalls) keep(key, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.texts == nil || len(l.texts) >= lostCallsMax {
		l.texts = map[string]string{}
	}
	l.texts[key] = text
}

// showLostCalls adds to the questions about calls whose outcome is unknown what the calls are. The questions in the logs name
// their ids only, and are decisions that stay as they were made.
func (c *viewer) showLostCalls(ctx context.Context, list []Question) {
	replays := 0
	for i, q := range list {
		if q.Query.Reason != spec.ResumeUnsafe || q.Query.Call == "" {
			continue
		}
		key := strings.Join([]string{q.RunID, string(q.Agent), q.Query.Call}, " ")
		text, known := c.lost.find(key)
		if !known && replays < lostCallsAtOnce {
			replays++
			if text = c.callText(ctx, q); text != "" {
				c.lost.keep(key, text)
			}
		}
		if text != "" {
			list[i].Query.Question += "\nThe call:\n" + text
		}
	}
}

// callText shows the call of a question as an approval does; "" if the log of the agent cannot be read: the question counts
// without it, too.
func (c *viewer) callText(ctx context.Context, q Question) string {
	at, err := c.agentAddress(ctx, q.RunID, q.Agent)
	if err != nil {
		return ""
	}
	s, _, err := c.replayTranscript(ctx, at)
	if err != nil {
		c.logger().Warn("the call of a question cannot be read", "run", q.RunID, "agent", q.Agent, "error", err)
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
