package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// skillTool is the tool that returns the text of a skill. The loop runs it like
// any other tool, and tells observers which skill was read.
const skillTool = "skill"

// publishCall adds an event about the call at a position of its reply.
func (c *stepEvents) publishCall(at int, kind event.Kind, data any) {
	c.list = append(c.list, stepEvent{group: callEvents, order: at, Event: event.Event{Kind: kind, Turn: turnOfStep, Data: data}})
}

// publishNewCalls publishes the calls of a reply: those that may run, and those that have ended already.
func (s State) publishNewCalls() State {
	for i, c := range s.Calls {
		if c.Stage == Ended {
			s = s.publishEnd(i, c, c.Result)
			continue
		}
		s.events.publishCall(i, event.KindToolValidated, event.ToolCall{Call: c.ID, Tool: c.Name, Class: c.Class, Child: c.Child})
	}
	return s
}

// publishProgress publishes the beginning or the end of a call, which with is about to record.
func (s State) publishProgress(i int, c Call) State {
	old := s.Calls[i]
	switch {
	case c.Stage == Running && (old.Stage != Running || old.Attempt != c.Attempt):
		if slices.Contains(s.events.restarted, callBase{c.ID, c.Attempt}) {
			break
		}
		s.events.publishCall(i, callKind(c.Child, event.KindToolStarted, event.KindDelegationRequested),
			event.ToolCall{Call: c.ID, Tool: c.Name, Class: c.Class, Child: c.Child, Attempt: c.Attempt, Args: c.Args})
	case c.Stage == Starting && old.Stage == Running:
		s.events.restarted = append(s.events.restarted, callBase{c.ID, c.Attempt})
	case c.Stage == Ended && old.Stage != Ended:
		s = s.publishEnd(i, c, c.Result)
	}
	return s
}

// publishEnd publishes the result of a call. Only the last result of a call in a step counts.
func (s State) publishEnd(i int, c Call, r model.ToolResult) State {
	s.events.list = slices.DeleteFunc(s.events.list, func(e stepEvent) bool {
		d, ok := e.Data.(event.ToolCall)
		return ok && e.group == callEvents && d.Call == c.ID && isEnd(e.Kind)
	})
	s.events.publishCall(i, callKind(c.Child, event.KindToolFinished, event.KindDelegationFinished),
		event.ToolCall{Call: c.ID, Tool: c.Name, Child: c.Child, Error: r.Error, Bytes: len(r.Text), Text: r.Text})
	command := func(known spec.Command) bool { return known.Name == skillTool }
	if c.Name == skillTool && !r.Error && !slices.ContainsFunc(s.Task.Commands, command) {
		var args struct{ Name string }
		decode(c.Args, &args)
		s.events.publishCall(i, event.KindSkillLoaded, event.SkillLoaded{Call: c.ID, Skill: history.Clip(args.Name, history.NameBytesShown), Bytes: len(r.Text)})
	}
	return s
}

// publishRefusal publishes the results of calls that do not run. Those that ended in an earlier step were published then.
func (s State) publishRefusal(calls []Call, results []model.ToolResult) State {
	for i, c := range calls {
		if s.events.replied || c.Stage != Ended {
			s = s.publishEnd(i, c, results[i])
		}
	}
	return s
}

func callKind(child spec.ID, tool, delegation event.Kind) event.Kind {
	if child != "" {
		return delegation
	}
	return tool
}

func isEnd(kind event.Kind) bool {
	return kind == event.KindToolFinished || kind == event.KindDelegationFinished
}
