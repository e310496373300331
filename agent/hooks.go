package agent

import "slices"

// Gate is a place where the loop waits for hooks, outside of calls.
type Gate struct {
	ID    string
	Point HookPoint
	Why   Transition // of the turn that waits for it
}

// hooksAt are the hooks of a point, in order. tool is "" where the point is not
// about a tool.
func (s State) hooksAt(p HookPoint, tool string) []Hook {
	var at []Hook
	for _, h := range s.Task.Manners.Hooks {
		if h.Point == p {
			at = append(at, h)
		}
	}
	return slices.Clip(at)
}

// beforeModel asks the hooks that stand before a model call: context, then input.
func beforeModel(s State, why Transition) (State, []Effect) { return reserve(s, why) }

// hooked takes what hooks answered: at a gate that is still open, or as a
// remark for the next turn.
func hooked(s State, _ Hooked) (State, []Effect) { return s, nil }
