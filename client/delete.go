package client

import "context"

// DeleteRequest removes a run that has ended.
type DeleteRequest struct {
	RunID string `json:"run_id,omitempty"`
	// Conversation removes a conversation and all its runs instead; the answer is a DeletedConversation.
	Conversation string `json:"conversation_id,omitempty"`
	// Schedule ends a schedule instead. Its runs stay.
	Schedule string `json:"schedule_id,omitempty"`
	// Unopened removes only the attachments and the history that a client sent ahead for a run that does not exist.
	Unopened bool `json:"unopened,omitempty"`
}

// Deleted answers a DeleteRequest.
type Deleted struct {
	RunID   string `json:"run_id"`
	Agents  int    `json:"agents"`          // whose logs were removed
	Already bool   `json:"already_deleted"` // by an earlier request
}

// PruneRequest removes the runs that ended at least OlderThanMS ago.
type PruneRequest struct {
	OlderThanMS int64 `json:"older_than_ms"`
	// DryRun only lists the runs that would be removed.
	DryRun bool `json:"dry_run,omitempty"`
	// After is the Last of the previous reply.
	After string `json:"after,omitempty"`
	// TombstonesAfter is the TombstonesLast of the previous reply.
	TombstonesAfter string `json:"tombstones_after,omitempty"`
}

// Pruned answers a PruneRequest. If More is set, ask again, with After set to Last and
// TombstonesAfter to TombstonesLast.
type Pruned struct {
	Runs           []string `json:"runs"`
	Kept           []Kept   `json:"kept"`
	Tombstones     int      `json:"tombstones"` // removed tombstones of logs that were deleted long ago
	Last           string   `json:"last,omitempty"`
	TombstonesLast string   `json:"tombstones_last,omitempty"`
	More           bool     `json:"more"`
}

// Kept is a run that could not be removed.
type Kept struct {
	RunID string `json:"run_id"`
	Why   string `json:"why"`
}

// Delete removes a run that has ended. Deleting it again is harmless.
func (c *Client) Delete(ctx context.Context, run string) (Deleted, error) {
	var d Deleted
	err := c.askNode(ctx, "delete", DeleteRequest{RunID: run}, &d)
	return d, err
}

// Withdraw removes the attachments and the history that a client sent ahead for a run that will not be
// opened. There may be nothing to remove.
func (c *Client) Withdraw(ctx context.Context, run string) error {
	var d Deleted
	return c.askNode(ctx, "delete", DeleteRequest{RunID: run, Unopened: true}, &d)
}

// Prune removes the runs that ended at least OlderThanMS ago.
func (c *Client) Prune(ctx context.Context, r PruneRequest) (Pruned, error) {
	all := Pruned{Runs: []string{}, Kept: []Kept{}}
	for {
		var p Pruned
		if err := c.askNode(ctx, "prune", r, &p); err != nil {
			return all, err
		}
		all.Runs, all.Kept, all.Tombstones = append(all.Runs, p.Runs...), append(all.Kept, p.Kept...), all.Tombstones+p.Tombstones
		if !p.More || p.Last <= r.After && p.TombstonesLast <= r.TombstonesAfter {
			return all, nil
		}
		r.After, r.TombstonesAfter = max(r.After, p.Last), max(r.TombstonesAfter, p.TombstonesLast)
	}
}
