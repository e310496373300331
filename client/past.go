package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// ExportRequest asks for a page of an agent's history; the agent "" is the root.
type ExportRequest struct {
	RunID string `json:"run_id"`
	Agent string `json:"agent,omitempty"`
	// Turn is the turn after which the history is taken; nil: its current state.
	Turn *int `json:"turn,omitempty"`
	// N and Offset are those of the previous page.
	N      uint64 `json:"n,omitempty"`
	Offset int64  `json:"offset,omitempty"`
}

// ExportPage is a part of the JSON form of a history.Transcript. The next page begins at Offset;
// the document is complete when Offset is Size.
type ExportPage struct {
	Data   string `json:"data"`
	N      uint64 `json:"n"`
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
}

// RecallRequest sends a part of a history that a run is to begin with.
type RecallRequest struct {
	RunID    string           `json:"run_id"`
	Past     string           `json:"past"` // identifies the history: its hash
	Part     int              `json:"part"`
	Messages []model.Message  `json:"messages"`
	Fold     *history.Summary `json:"fold,omitempty"`
	// Tainted is the text from outside that the agent of the history had read; nil: none.
	Tainted *spec.Taint `json:"tainted,omitempty"`
}

// History identifies the history that was sent with RecallRequest.
type History struct {
	Past  string `json:"past"`
	Parts int    `json:"parts"`
}

// Export reads an agent's history as the JSON form of a history.Transcript.
func (c *Client) Export(ctx context.Context, run, who string, turn *int) (json.RawMessage, error) {
	var doc strings.Builder
	r := ExportRequest{RunID: run, Agent: who, Turn: turn}
	for {
		var page ExportPage
		if err := c.askNode(ctx, "export", r, &page); err != nil {
			return nil, err
		}
		doc.WriteString(page.Data)
		if page.Offset >= page.Size || page.Offset <= r.Offset {
			return json.RawMessage(doc.String()), nil
		}
		r.N, r.Offset = page.N, page.Offset
	}
}

// Recall sends the history that a run is to begin with. The run's request then refers to it.
// A run that exists already needs none.
func (c *Client) Recall(ctx context.Context, run string, past history.Transcript) (History, error) {
	doc, err := json.Marshal(past)
	if err != nil {
		return History{}, fmt.Errorf("client: recall: %w", err)
	}
	sum := sha256.Sum256(doc)
	parts, err := agent.RecallParts(past, hex.EncodeToString(sum[:8]))
	if err != nil {
		return History{}, fmt.Errorf("client: recall: %w", err)
	}
	h := History{Parts: len(parts)}
	for _, p := range parts {
		h.Past = p.Past
		err := c.askNode(ctx, "recall", RecallRequest{RunID: run, Past: p.Past, Part: p.Part, Messages: p.Messages, Fold: p.Fold, Tainted: p.Tainted}, nil)
		if refused := (*Error)(nil); errors.As(err, &refused) && refused.Code == CodeConflict {
			break
		}
		if err != nil {
			return h, err
		}
	}
	return h, nil
}
