package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// cancelWithin is when a run that is to be canceled is, at the latest.
const cancelWithin = 4 * time.Second

// byCancel are the ends of runs that were canceled.
var byCancel = []spec.Reason{spec.ByCancel, spec.AbortedStreaming, spec.AbortedTools}

// planCancels decides whether a run is canceled, and has two people do it, at moments
// of their own, each up to three times.
func (l *load) planCancels(ctx context.Context, r *finishedRun) {
	if rand.IntN(100) >= l.t.o.cancels {
		return
	}
	r.canceled = true
	for range 2 {
		id := client.NewID()
		l.wait.Go(func() {
			if sleepFor(ctx, rand.N(cancelWithin)) != nil {
				return
			}
			for range 1 + rand.IntN(3) {
				if err := repeatRequest(ctx, func() error {
					_, err := l.t.client.Cancel(ctx, client.CancelRequest{RunID: r.id, Request: id})
					return err
				}); err != nil && !isGone(err) && ctx.Err() == nil {
					l.t.found.addOf(r.id, "run %s could not be canceled: %v", r.id, err)
				}
			}
		})
	}
}

// noteStopped notes what had begun by the time a run was reported as over.
func (l *load) noteStopped(r *finishedRun) {
	r.ended = time.Now()
	if r.canceled {
		r.lines = l.t.files.countEffects(r.id)
	}
}

// countEffects is how many effects of a run are in the ledger.
func (s testDir) countEffects(run string) int {
	data, err := os.ReadFile(s.ledger)
	if err != nil {
		return 0 // nothing has happened yet
	}
	return strings.Count("\n"+string(data), "\n"+run+".")
}

// judgeCanceled checks that nothing of a canceled run came after its end. What a frozen
// node had begun may take effect after it is thawed.
func (t *clusterJudge) judgeCanceled(r *finishedRun) {
	t.canceled++
	if r.result.Reason != spec.Completed && !slices.Contains(byCancel, r.result.Reason) {
		t.found.addOf(r.id, "run %s was canceled, and ended %s: %s", r.id, r.result.Reason, r.result.Detail)
	}
	for _, a := range r.result.Agents {
		if a.Phase != "done" {
			t.found.addOf(r.id, "run %s is over, and its agent %s is %s", r.id, a.ID, a.Phase)
		}
	}
	if t.o.stops+t.o.zombies > 0 {
		return
	}
	if last := t.p.lastRequest(r.id); last.After(r.ended) {
		t.found.addOf(r.id, "run %s was told to be over, and a model was asked %v later", r.id, last.Sub(r.ended))
	}
	if now := t.files.countEffects(r.id); now != r.lines {
		t.found.addOf(r.id, "run %s was told to be over, and %d effects came later", r.id, now-r.lines)
	}
}

// lastRequest returns when the last request of a run arrived.
func (p *provider) lastRequest(run string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[run]
}

// cancelLine reports the canceled runs.
func (t *clusterJudge) cancelLine() string {
	if t.canceled == 0 {
		return ""
	}
	return fmt.Sprintf("%d runs were canceled; nothing of them began after they were told to be over\n", t.canceled)
}
