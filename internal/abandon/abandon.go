// Package abandon cancels the run of a caller that has gone away.
package abandon

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/client"
)

// Grace is how long the agents may take to reach a safe boundary. After that, calls in progress are aborted: their
// results are no longer needed.
const Grace = client.CancelWaitDefault

// timeout bounds a cancel: the grace, and two requests.
const timeout = Grace + 60*time.Second

// Run cancels a run as the first Ctrl-C in a terminal does: at the next safe boundary of each agent, and at once
// after the grace. It goes on when ctx ends.
func Run(ctx context.Context, c *client.Client, run, why string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	reply, err := c.Cancel(ctx, client.CancelRequest{RunID: run, Why: why, WaitMS: Grace.Milliseconds()})
	if err == nil && len(reply.Pending) > 0 {
		_, err = c.Cancel(ctx, client.CancelRequest{RunID: run, Why: why, Now: true, WaitMS: -1})
	}
	if err != nil {
		return fmt.Errorf("cancel the run of a caller that has gone away: %w", err)
	}
	return nil
}
