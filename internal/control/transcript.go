package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/promptlayer"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// Transcript is one agent's messages.
type Transcript struct {
	Agent    spec.ID         `json:"agent"`
	Name     string          `json:"name"`
	System   string          `json:"system"`
	Messages []model.Message `json:"messages"`
	// Folds are the compactions, in their order.
	Folds []client.Fold `json:"folds"`
}

func (c *viewer) readTranscript(ctx context.Context, r client.TranscriptRequest) (any, error) {
	if _, err := c.lookup.findRun(ctx, r.RunID); err != nil {
		return nil, err
	}
	if r.Agent == "" {
		r.Agent = string(spec.Root)
	}
	if err := names.CheckToken(r.Agent); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "agent: " + err.Error(), Hint: "`troupe describe` shows the ids of agents"}
	}
	at, err := c.views.agentAddress(ctx, r.RunID, spec.ID(r.Agent))
	if err != nil {
		return nil, err
	}
	s, folds, err := replayTranscript(ctx, c.cfg.Post, at)
	if err != nil {
		return nil, err
	}
	if s.Task.ID == "" {
		return nil, runlog.ExplainNoAgent(ctx, c.cfg.Post, spec.ID(r.Agent), r.RunID)
	}
	system, _ := promptlayer.Compose(s.Task)
	return fitTranscript(Transcript{Agent: s.Task.ID, Name: s.Task.Name, System: system, Messages: s.History, Folds: folds})
}

// replayTranscript replays the log of an agent, and collects each compaction on the way: the
// agent's state has only the newest.
func replayTranscript(ctx context.Context, post mailbox.Store, at mailbox.Address) (agent.State, []client.Fold, error) {
	m := &activation.Agent{Addr: at}
	folds := []client.Fold{}
	upto := 0
	_, err := runlog.Replay(ctx, post, at, m, func(mailbox.Message) error {
		if f := m.State.Fold; f.Upto > upto {
			folds, upto = append(folds, client.Fold{Upto: f.Upto, Turn: f.Turn, Deep: f.Deep, Plain: f.Plain, Text: f.Text}), f.Upto
		}
		return nil
	})
	if err != nil {
		return agent.State{}, nil, err
	}
	return m.State, folds, nil
}

// fitTranscript cuts long texts, the longest first, until it fits a reply.
func fitTranscript(t Transcript) (Transcript, error) {
	for most := bounds.ReplyBytes / 4; ; most /= 4 {
		raw, err := json.Marshal(t)
		if err != nil {
			return t, fmt.Errorf("control: transcript: %w", err)
		}
		if len(raw) <= bounds.ReplyBytes {
			return t, nil
		}
		if most < bounds.TextBytesMin {
			return t, &client.Error{Code: client.CodeLimit, Text: "the transcript is too long for one reply", Hint: "`troupe events` reads it in pages"}
		}
		messages := make([]model.Message, len(t.Messages))
		for i, m := range t.Messages {
			m.Text = bounds.TruncateText(m.Text, most)
			m.Opaque = nil
			m.Calls, m.Results = append([]model.ToolCall{}, m.Calls...), append([]model.ToolResult{}, m.Results...)
			for j := range m.Calls {
				m.Calls[j].Args = bounds.TruncateText(m.Calls[j].Args, most)
			}
			for j := range m.Results {
				m.Results[j].Text = bounds.TruncateText(m.Results[j].Text, most)
			}
			messages[i] = m
		}
		t.Messages = messages
		t.Folds = slices.Clone(t.Folds)
		for i := range t.Folds {
			t.Folds[i].Text = bounds.TruncateText(t.Folds[i].Text, most)
		}
	}
}
