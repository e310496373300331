package gateway

import (
	"context"
	"fmt"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
)

// attach keeps a part of a file that is to come with the prompt of a run, before
// the run is there. Whoever sends it again finds it kept.
func (c *Control) attach(ctx context.Context, r client.AttachRequest) (any, error) {
	if err := bus.Token(r.RunID); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("run_id: %v", err), Hint: "choose a lower-case ULID"}
	}
	if n := len(r.Data); n == 0 || n > client.AttachPartBytes {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("a part of %d bytes", n), Hint: fmt.Sprintf("send 1 to %d bytes at once", client.AttachPartBytes)}
	}
	if c.cfg.Blobs == nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "this node keeps no blobs", Hint: "ask a node that runs agents"}
	}
	ref, err := c.cfg.Blobs.Put(ctx, r.RunID, r.Data)
	if err != nil {
		return nil, fmt.Errorf("gateway: attach: %w", err)
	}
	return client.Attached{Ref: ref, Size: int64(len(r.Data))}, nil
}
