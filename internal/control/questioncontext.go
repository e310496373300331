package control

import (
	"context"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
)

const (
	journalsMax    = 64 // questions that have them: the oldest
	journalsAtOnce = 16 // questions whose logs are replayed for one request; the next request reads those of further ones
	// journalFailuresMax is how many questions of one request may have logs that cannot be read: later ones are not tried.
	journalFailuresMax = 16
)

// goalBytesMax bounds the task of a run that is shown with a question.
const goalBytesMax = 400

// questionContext is shown with a question so that a person can judge it. It is read once for each question: the
// asking agent cannot edit its journal while it waits. The root's journal may have changed since.
type questionContext struct {
	goal, journal, agentJournal string
}

// addQuestionContexts adds the task of the run and the digests of the journals of its root and of the agent that
// asks. A question whose logs cannot be read is listed without them.
func (c *viewer) addQuestionContexts(ctx context.Context, list []Question) {
	replays, failures := 0, 0
	for i, q := range list[:min(len(list), journalsMax)] {
		key := strings.Join([]string{q.RunID, string(q.Agent), q.Query.Query}, " ")
		found, known := c.contexts.find(key)
		if !known {
			if replays >= journalsAtOnce || failures >= journalFailuresMax {
				continue
			}
			var ok bool
			if found, ok = c.readQuestionContext(ctx, q); !ok {
				failures++
				continue
			}
			replays++
			c.contexts.keep(key, found)
		}
		list[i].Goal, list[i].Journal, list[i].AgentJournal = found.goal, found.journal, found.agentJournal
	}
}

// readQuestionContext replays the logs of the agent that asks and of the root.
func (c *viewer) readQuestionContext(ctx context.Context, q Question) (found questionContext, ok bool) {
	root, ok := c.readAgentState(ctx, q.RunID, spec.Root)
	if !ok {
		return found, false
	}
	found.goal, found.journal = clip.Text(root.Task.Goal, goalBytesMax), root.Journal.Digest()
	if q.Agent != spec.Root {
		asks, ok := c.readAgentState(ctx, q.RunID, q.Agent)
		if !ok {
			return found, false
		}
		found.agentJournal = asks.Journal.Digest()
	}
	return found, true
}

func (c *viewer) readAgentState(ctx context.Context, run string, id spec.ID) (s agent.State, ok bool) {
	at, err := c.views.agentAddress(ctx, run, id)
	if err == nil {
		s, _, err = replayTranscript(ctx, c.cfg.Post, at)
	}
	if err != nil {
		c.cfg.logger().Warn("the journal beside a question cannot be read", "run", run, "agent", id, "error", err)
	}
	return s, err == nil
}
