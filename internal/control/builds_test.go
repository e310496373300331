package control

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// TestAttackManyBuildsAtOnce: a node builds a bounded number of runs at once, and a request whose time is over leaves the queue.
func TestAttackManyBuildsAtOnce(t *testing.T) {
	t.Parallel()
	most := buildsPerProcessor * runtime.GOMAXPROCS(0)
	begun, finish := make(chan struct{}, most+1), make(chan struct{})
	c := newParts(&Config{Build: func(client.RunRequest) (supervisor.Opened, client.RunAccepted, error) {
		begun <- struct{}{}
		<-finish
		return supervisor.Opened{}, client.RunAccepted{}, nil
	}}).opener
	built := make(chan error, most)
	for range most {
		go func() {
			_, _, err := c.build(t.Context(), client.RunRequest{})
			built <- err
		}()
	}
	for range most {
		<-begun
	}
	over, end := context.WithCancel(t.Context())
	end()
	if _, _, err := c.build(over, client.RunRequest{RunID: "r"}); !errors.Is(err, context.Canceled) {
		t.Errorf("one more build: %v", err)
	}
	close(finish)
	for range most {
		if err := <-built; err != nil {
			t.Error(err)
		}
	}
	if _, _, err := c.build(t.Context(), client.RunRequest{}); err != nil {
		t.Errorf("a build after the others: %v", err)
	}
}
