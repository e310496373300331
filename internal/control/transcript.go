package control

import (
	"context"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus/names"
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
	if _, err := c.findRun(ctx, r.RunID); err != nil {
		return nil, err
	}
	if r.Agent == "" {
		r.Agent = string(spec.Root)
	}
	if err := names.CheckToken(r.Agent); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "agent: " + err.Error(), Hint: "`troupe describe` shows the ids of agents"}
	}
	at, err := c.agentAddress(ctx, r.RunID, spec.ID(r.Agent))
	if err != nil {
		return nil, err
	}
	s, folds, err := c.replayTranscript(ctx, at)
	if err != nil {
		return nil, err
	}
	if s.Task.ID == "" {
		return nil, c.explainNoAgent(ctx, spec.ID(r.Agent), r.RunID)
	}
	system, _ := s.Task.SystemPrompt()
	return fitTranscript(Transcript{Agent: s.Task.ID, Name: s.Task.Name, System: system, Messages: s.History, Folds: folds})
}

// agentAddress returns the address of an agent of a run.
func (c *lookup) agentAddress(ctx context.Context, run string, id spec.ID) (mailbox.Address, error) {
	at := mailbox.At(run, string(id))
	if c.cfg.Cluster == nil {
		return at, nil // there is only one pool
	}
	row, err := c.findRun(ctx, run)
	if err != nil {
		return at, err
	}
	l, err := c.viewRun(ctx, row)
	if err != nil {
		return at, err
	}
	found, err := c.findAgent(ctx, l, id)
	if isNotFound(err) {
		return at, nil // its log is empty
	}
	return found, err
}

// replayTranscript replays the log of an agent, and collects each compaction on the way: the
// agent's state has only the newest.
func (c *lookup) replayTranscript(ctx context.Context, at mailbox.Address) (agent.State, []client.Fold, error) {
	m := &activation.Agent{Addr: at}
	folds := []client.Fold{}
	upto := 0
	_, err := replay(ctx, c.cfg.Post, at, m, func(mailbox.Message) error {
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
