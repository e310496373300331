package troupe_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// refusalCounter is a log handler that counts the requests which the node refuses.
type refusalCounter struct{ refused *atomic.Int64 }

func (refusalCounter) Enabled(context.Context, slog.Level) bool { return true }

func (c refusalCounter) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "a request was refused" {
		c.refused.Add(1)
	}
	return nil
}

func (c refusalCounter) WithAttrs([]slog.Attr) slog.Handler { return c }
func (c refusalCounter) WithGroup(string) slog.Handler      { return c }

// A program starts a thousand runs at once and waits for all of them: each run begins, none is
// refused, and each caller gets its result.
func TestAThousandRunsAtOnceAreNotRefused(t *testing.T) {
	const runs = 1000
	var begun, refused atomic.Int64
	allBegun := make(chan struct{})
	hold := tool.Func("hold", "Waits for all others.", model.Read, func(ctx context.Context, _ struct{}) (string, error) {
		if begun.Add(1) == runs {
			close(allBegun)
		}
		select {
		case <-allBegun:
		case <-ctx.Done():
		}
		return "all are here", ctx.Err()
	})
	n := startScripted(t, "agents: {a: [{calls: [{name: hold}]}, {text: done}]}",
		troupe.Config{Tools: []tool.Tool{hold}, Agents: namedAgents("a"), Logger: slog.New(refusalCounter{&refused})})
	ctx := t.Context() // no time limit: the work of 1,000 runs takes as long as the machine needs
	var all sync.WaitGroup
	for range runs {
		all.Go(func() {
			if r, err := n.Run(ctx, troupe.Task{Prompt: "wait"}); err != nil || r.Text != "done" {
				t.Errorf("%q, %v", r.Text, err)
			}
		})
	}
	all.Wait()
	if n := refused.Load(); n > 0 {
		t.Errorf("%d requests were refused", n)
	}
}
