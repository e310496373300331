package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
)

// An agent that has read text from outside is tainted: anybody may have written such a text, and a model may obey it.
// The mark follows from the log: the result of a tool that brings such text, a message or an answer of an agent that
// is tainted, or the task itself. It stays until the agent ends, travels with all that the agent says to others, and
// binds the calls that send data out (internal/permission/taint.go). It counts from the model's next reply on,
// because the reply before it was made without the text.

// markTainted records the first text from outside that an agent reads.
func markTainted(s *State, t *spec.Taint) *State {
	if t == nil || s.Tainted != nil || !s.permissions.RecordsTaint() {
		return s
	}
	s.Tainted = t
	s.events.publish(entryEvents, event.KindAgentTainted, event.AgentTainted{Taint: *t})
	return s
}

// markResults marks an agent that reads the results of its calls.
func markResults(s *State, calls []Call) *State {
	t := taintOfResults(s, calls)
	s = markTainted(s, t) //mutant:result-taints-nobody
	return s
}

// taintOfResults is the first text from outside among the results of calls.
func taintOfResults(s *State, calls []Call) *spec.Taint {
	if !s.permissions.RecordsTaint() {
		return nil
	}
	for _, c := range calls {
		switch {
		case c.Tainted != nil:
			return c.Tainted
		case c.Attempt > 0 && s.permissions.BringsOutside(permission.Call{Tool: c.Name, Args: c.Args}, s.tools.specOf(c.Name), isCommand(&s.Task, c.Name)):
			return &spec.Taint{Source: "tool", Agent: s.Task.ID, Tool: c.Name, Call: c.ID}
		}
	}
	return nil
}

// noteReturnedTaint keeps what the answer of a call says about its text.
func noteReturnedTaint(s *State, i int, f Returned) *State {
	if f.Tainted == nil {
		return s
	}
	s = cloneCalls(s)
	s.Calls[i].Tainted = f.Tainted
	return s
}

// isCommand reports whether a tool is a command of an agent file.
func isCommand(t *spec.Task, tool string) bool {
	return slices.ContainsFunc(t.Commands, func(k spec.Command) bool { return k.Name == tool })
}

// permissionTool is what the permissions need to know of the tool of a call.
func permissionTool(s *State, c Call) permission.Tool {
	toolSpec := s.tools.specOf(c.Name)
	t := permission.Tool{Class: toolSpec.Class, Command: isCommand(&s.Task, c.Name)}
	// whether its results are text from outside does not matter here
	t.Data = permission.DataOf(toolSpec, t.Command, false)
	if s.Task.Private || s.tools.private {
		t.TaintReason = permission.DescribeTaint(s.Tainted)
	}
	return t
}

// taintOfQuestion is the text from outside that a question about a call names; nil: it names none.
func taintOfQuestion(s *State, c Call) *spec.Taint {
	if !c.Gate.Permit.Tainted {
		return nil
	}
	return s.Tainted
}

// taintOfHistory is the text from outside that the agent of a history had read, for an agent of another run.
func taintOfHistory(p history.Transcript) *spec.Taint {
	if p.Tainted == nil {
		return nil
	}
	t := *p.Tainted
	if t.Run == "" {
		t.Run = p.Run
	}
	return &t
}
