package actors_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
)

// A result that finds no room while its log is handed over is waited for: were
// the log given without it, the next owner would run the tool again (P3).
func TestHandOverWaitsUntilTheLogAcceptsToolResult(t *testing.T) {
	inBubble(aHandOverWaitsForARefusedResult)(t)
}

func aHandOverWaitsForARefusedResult(t *testing.T) {
	post := memory.New(memory.Config{})
	var refused atomic.Int32
	full := faultyPost{Post: post, append: func(_ mailbox.Address, kind string) error {
		if kind == "returned" && refused.Add(1) == 1 {
			return mailbox.ErrFull
		}
		return nil
	}}
	work, inside, free, times := waitingTool(model.Effect)
	const once = `{agents: {boss: [{calls: [{name: work}]}, {text: "{{last}}"}]}}`
	first := playRun(t, full, 1, once, work)
	first.openRun("r1", work)
	<-inside
	gone := make(chan struct{})
	first.node.HandOver("all", func(mailbox.Address, uint64) bool { return true }, func() { close(gone) })
	close(free)
	select {
	case <-gone:
	case <-time.After(deadline):
		t.Fatal("the log was not let go")
	}
	first.node.Stop()
	second := playRun(t, post, 2, once, work)
	second.resumeRun("r1")
	if r := second.awaitResult(); r.Reason != spec.Completed || r.Text != "worked" || times.Load() != 1 {
		t.Errorf("it worked %d times: %+v; %v", times.Load(), r, logKinds(t, post, "r1.root"))
	}
}
