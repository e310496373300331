package actors

import (
	"fmt"
	"time"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/tool"
)

// Progress is the data of tool.progress.
type Progress struct {
	Call    string  `json:"call"`
	Tool    string  `json:"tool"`
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"` // 0: not known
	Message string  `json:"message,omitempty"`
}

// progress tells observers how far a call has come, as its tool says. Like what
// deltas tell it is no entry, and may be lost.
func (s *shell) progress(e agent.CallTool) func(tool.Progress) {
	if s.cfg.Events == nil {
		return nil
	}
	at, t := s.life.Addr, s.agent.State.Task
	events, node, i := s.cfg.Events, s.cfg.Name, 0
	return func(p tool.Progress) {
		i++
		events(life.Event{V: 1, ID: fmt.Sprintf("%s#call-%s.%d", at.Bare(), key(e.Call, e.Attempt), i), TS: life.Stamp(time.Now().UnixMilli()),
			Run: t.Run, Agent: string(t.ID), Parent: string(t.Parent), Node: node, Kind: "tool.progress", Turn: e.Turn,
			Data: Progress{Call: e.Call, Tool: e.Name, Done: p.Done, Total: p.Total, Message: p.Message}})
	}
}
