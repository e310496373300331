package eval

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/model"
)

// scriptedHooks answer as the case says, in order, and pass after the last answer.
type scriptedHooks struct {
	c *Case

	mu    sync.Mutex
	asked map[string]int // by name
}

func (h *scriptedHooks) hookFuncs() map[string]hook.Func {
	if h.c.opened != nil {
		return h.recordedFuncs()
	}
	all := map[string]hook.Func{}
	for _, about := range h.c.Hooks {
		all[about.Name] = func(ctx context.Context, _ hook.Call) (spec.HookAnswer, error) {
			return h.nextAnswer(about).answerHook(ctx)
		}
	}
	return all
}

func (h *scriptedHooks) nextAnswer(about ScriptedHook) HookAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.asked[about.Name]
	h.asked[about.Name]++
	if n < len(about.Answers) {
		return about.Answers[n]
	}
	return HookAnswer{}
}

func (a HookAnswer) answerHook(ctx context.Context) (spec.HookAnswer, error) {
	if err := pause(ctx, time.Duration(a.Delay)); err != nil {
		return spec.HookAnswer{}, err
	}
	if a.Fails != "" {
		return spec.HookAnswer{}, errors.New(a.Fails)
	}
	out := spec.HookAnswer{Decision: a.Decision, Text: a.Text, Args: a.Args}
	for _, m := range a.Messages {
		out.Messages = append(out.Messages, model.Message{Role: m.Role, Text: m.Text})
	}
	return out, nil
}
