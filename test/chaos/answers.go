package main

import (
	"context"

	"github.com/troupe-run/troupe/client"
)

// waitAnswering waits for the end of a run whose agents may ask the user: an agent whose
// delegations are all rejected asks sooner or later, and the user tells it to continue.
func (l *load) waitAnswering(ctx context.Context, id string) (info client.RunInfo, err error) {
	for {
		if err := repeatRequest(ctx, func() (err error) { info, err = l.t.client.Wait(ctx, id); return err }); err != nil || info.State == client.RunFinished {
			return info, err
		}
		for _, a := range info.Result.Agents {
			if a.Query == nil {
				continue
			}
			req := client.AnswerRequest{RunID: id, Request: "defuse-" + hashOf(string(a.ID)+" "+a.Query.Query), Agent: string(a.ID), Query: a.Query.Query, Decision: "text", Text: "go on alone"}
			if err := repeatRequest(ctx, func() error { return l.t.client.Answer(ctx, req) }); err != nil && !isGone(err) {
				return info, err
			}
		}
		if err := sleepFor(ctx, poll); err != nil {
			return info, err
		}
	}
}

// runBatch starts some runs and waits for their end.
func (l *load) runBatch(runs int) {
	l.mu.Lock()
	l.enough, l.begun, l.t.o.runs = true, 0, runs
	l.mu.Unlock()
	l.beginRuns()
	l.awaitEnd()
}
