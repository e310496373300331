package actors

import (
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/hook"
)

// hookPrefix begins the keys of hooks; no call of a tool begins so.
const hookPrefix = "hook:"

// runHooks asks the hooks of one point. Their answers become one entry: a later
// life reads it and asks nobody again. What is aborted brings none, for nothing
// waits for it.
func (s *shell) runHooks(c actor.Context, e agent.RunHooks) {
	k, t := hookPrefix+e.ID, s.agent.State.Task
	w := s.own("hooked", k, nil)
	about := hook.Call{Run: t.Run, Agent: string(t.ID), Parent: string(t.Parent), Name: t.Name, Depth: t.Depth, Workspace: t.Workspace}
	ctx, deliver, runner := s.work.begin(s.ctx, k), s.deliver(c), s.cfg.hooks
	mayBegin, unbegun := s.mayBegin(), s.sendUnbegun(c, k, e)
	go func() {
		if !mayBegin() {
			unbegun()
			return
		}
		answers := runner.Run(ctx, about, e)
		if ctx.Err() != nil {
			return // aborted, or the process is ending
		}
		w.body = agent.Hooked{ID: e.ID, Point: e.Point, Answers: answers}
		deliver(w)
	}()
}

// hooking: hooks run that nobody waits for. A log is closed when they are
// through, so that the last word of a provider reaches those who asked for it.
func (w *world) hooking() bool {
	for key := range w.cancels {
		if strings.HasPrefix(key, hookPrefix) {
			return true
		}
	}
	return false
}
