package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/hook"
)

// HookFunc is a hook in Go, HookCall its input. A HookFunc should return when its context
// ends; an error is a failure of the hook, not a verdict.
type (
	HookFunc = hook.Func
	HookCall = hook.Call
)

// runHooks asks the hooks of one point. Their answers become one entry: a later activation
// reads that entry and does not ask again. Aborted hooks produce no entry, because no step
// waits for them.
func (s *shell) runHooks(c actor.Context, e agent.RunHooks, p activation.Perform) {
	k, t := p.Key, s.state.Agent.State.Task
	w := s.state.OwnResult("hooked", k, nil)
	about := hook.Call{Run: t.Run, Agent: string(t.ID), Parent: string(t.Parent), Name: t.Name, Depth: t.Depth, Workspace: t.Workspace}
	ctx, deliver, runner := s.work.beginWork(s.ctx, k), s.resultSender(c), s.cfg.hooks
	mayBegin, unbegun := s.mayBegin(p.Lease), s.notBegun(c, k, e)
	go func() {
		if !mayBegin() {
			unbegun()
			return
		}
		answers := runner.Run(ctx, about, e)
		if ctx.Err() != nil {
			return // aborted, or the process is ending
		}
		w.Body = agent.Hooked{ID: e.ID, Point: e.Point, Answers: answers}
		deliver(w)
	}()
}
