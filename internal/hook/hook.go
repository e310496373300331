// Package hook runs the hooks of a loop: Go functions and command lines of the
// user. Each hook yields exactly one answer, whatever happens: a hook that crashes,
// hangs, prints too much or prints nonsense gives no verdict, and the answer says why.
//
// Package agent alone decides what the answers mean.
package hook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/redact"
)

// Limits of hooks.
const (
	// BlockingMax and NotifiedMax bound the hooks that run at once in a process: those for which
	// loops wait, and those for which they do not. Further hooks wait.
	BlockingMax = 64
	NotifiedMax = 8
	// AbandonGrace is how long a hook may take to end after its timeout. A command is killed
	// earlier; a Go function is abandoned.
	AbandonGrace = 2 * time.Second
	// AnswersBytesMax bounds all answers at one hook point, which share an entry.
	AnswersBytesMax = 200 << 10
)

// Call is the input of a hook.
type Call struct {
	Run, Agent, Parent string
	Name               string // of the agent's definition
	Depth              int
	Workspace          string
	ID                 string // of the hook point: the same when the hook is asked again after a crash
	Turn               int
	Hook               spec.Hook
	Data               spec.HookData
}

// Func is a hook in Go. It should end when ctx does. An error is a failure of
// the hook, not a verdict.
type Func func(ctx context.Context, c Call) (spec.HookAnswer, error)

// Runner runs hooks. It is safe for concurrent use.
type Runner struct {
	funcs              map[string]Func
	env                func(workspace string) []string
	mask               *redact.Masker
	blocking, notified chan struct{}
}

// NewRunner makes a Runner that knows these Go functions by the names of their hooks. env returns further variables
// (NAME=value) of commands for a directory; nil: there are none.
func NewRunner(funcs map[string]Func, env func(workspace string) []string) *Runner {
	if env == nil {
		env = func(string) []string { return nil }
	}
	return &Runner{funcs: funcs, env: env, mask: redact.New(redact.Config{}), blocking: make(chan struct{}, BlockingMax), notified: make(chan struct{}, NotifiedMax)}
}

// errUnknown: a hook without a command names a Go function that this node does not have.
var errUnknown = errors.New("this node has no hook of that name")

// errTimeout is the cause of the context of a hook that has timed out.
type errTimeout struct{ after time.Duration }

func (e errTimeout) Error() string { return fmt.Sprintf("timed out after %s", e.after) }

// Run asks the hooks of one point and returns their answers in order. about is the call
// without ID, Turn, Hook and Data. Hooks run in parallel; those that reshape a prompt run
// one after the other, each on the result of the one before it. If ctx ends, the answers
// mean nothing.
func (r *Runner) Run(ctx context.Context, about Call, e agent.RunHooks) []spec.HookAnswer {
	about.ID, about.Turn, about.Data = e.ID, e.Turn, e.Input
	answers := make([]spec.HookAnswer, len(e.Hooks))
	if e.Point == spec.HookContext {
		r.runInSequence(ctx, about, e.Hooks, answers)
		return fitAnswers(answers)
	}
	var all sync.WaitGroup
	for i, h := range e.Hooks {
		c := about
		c.Hook = h
		all.Go(func() { answers[i] = r.runHook(ctx, c) })
	}
	all.Wait()
	return fitAnswers(answers)
}

// runInSequence runs hooks that reshape. It keeps only the last messages, because an entry must
// hold them.
func (r *Runner) runInSequence(ctx context.Context, about Call, hooks []spec.Hook, answers []spec.HookAnswer) {
	last := -1
	for i, h := range hooks {
		about.Hook = h
		a := r.runHook(ctx, about)
		if a.System != nil && a.Failed == "" && !h.Report {
			about.Data.System = *a.System
		}
		if a.Messages != nil && a.Failed == "" && !h.Report {
			about.Data.Messages, a.Sent = a.Messages, len(a.Messages)
			if last >= 0 {
				answers[last].Messages = nil
			}
			last = i
		}
		answers[i] = a
	}
}

// runHook asks one hook, within its timeout.
func (r *Runner) runHook(ctx context.Context, c Call) spec.HookAnswer {
	slots := r.notified
	if c.Hook.Point.Gate() {
		slots = r.blocking
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return spec.HookAnswer{Hook: c.Hook.Name, Failed: "it was ended before it began"}
	}
	began := time.Now()
	a, err := r.callWithTimeout(ctx, c)
	if err == nil {
		a, err = r.sanitizeAnswer(c, a)
	}
	if err != nil {
		a = spec.HookAnswer{Failed: r.mask.MaskText(clipText(err.Error(), failureShown))}
	}
	a.Hook, a.TookMS = c.Hook.Name, time.Since(began).Milliseconds()
	return a
}

const failureShown = 1 << 10

// callWithTimeout calls a hook and returns soon after its timeout, whatever the hook does.
func (r *Runner) callWithTimeout(ctx context.Context, c Call) (spec.HookAnswer, error) {
	limit := time.Duration(c.Hook.TimeoutMS) * time.Millisecond
	if limit <= 0 {
		limit = spec.HookTimeoutMS * time.Millisecond
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout{limit})
	defer cancel()
	f := r.funcs[c.Hook.Name]
	if c.Hook.Command != "" {
		f = func(ctx context.Context, c Call) (spec.HookAnswer, error) {
			return runCommand(ctx, c, r.env(c.Workspace))
		}
	}
	if f == nil {
		return spec.HookAnswer{}, errUnknown
	}
	type result struct {
		answer spec.HookAnswer
		err    error
	}
	done := make(chan result, 1)
	go func() {
		out := result{err: errors.New("it ended without an answer")}
		defer func() {
			if p := recover(); p != nil {
				out = result{err: fmt.Errorf("it crashed: %v", p)}
			}
			done <- out
		}()
		a, err := f(ctx, c)
		out = result{a, err}
	}()
	select {
	case out := <-done:
		return preferContextCause(ctx, out.answer, out.err)
	case <-ctx.Done():
	}
	grace := time.NewTimer(AbandonGrace)
	defer grace.Stop()
	select {
	case out := <-done:
		return preferContextCause(ctx, out.answer, out.err)
	case <-grace.C:
		return spec.HookAnswer{}, fmt.Errorf("%w, and did not stop: it may still be running", context.Cause(ctx))
	}
}

// preferContextCause replaces an error that occurs after the end of ctx by the cause of that end. An
// answer that arrives despite it counts.
func preferContextCause(ctx context.Context, a spec.HookAnswer, err error) (spec.HookAnswer, error) {
	if err != nil && ctx.Err() != nil {
		return spec.HookAnswer{}, context.Cause(ctx)
	}
	return a, err
}
