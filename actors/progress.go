package actors

import (
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/tool"
)

// publishProgress publishes how far a call has come, as its tool reports it. Like a delta, this is
// no entry, and may be lost.
func (s *shell) publishProgress(e agent.CallTool) func(tool.Progress) {
	if s.cfg.OnEvent == nil {
		return nil
	}
	t := &s.state.Agent.State.Task
	at, run, id, parent := s.addr, t.Run, string(t.ID), string(t.Parent) // the function must not hold the task
	events, node, i := s.cfg.OnEvent, s.cfg.Name, 0
	return func(p tool.Progress) {
		i++
		events(activation.NewPublished(time.Now().UnixMilli(), event.Published{ID: fmt.Sprintf("%s#call-%s.%d", at.Bare(), activation.AttemptKey(e.Call, e.Attempt), i),
			Run: run, Agent: id, Parent: parent, Node: node, Kind: event.KindToolProgress, Turn: e.Turn,
			Data: event.Progress{Call: e.Call, Tool: e.Name, Done: p.Done, Total: p.Total, Message: p.Message}}))
	}
}
