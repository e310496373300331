package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// skillTool is the tool that returns the text of a skill. The loop runs it like
// any other tool, and tells observers which skill was read.
const skillTool = "skill"

// publishCall adds an event about the call at a position of its reply.
func (e *stepEvents) publishCall(at int, kind event.Kind, data any) {
	e.list = append(e.list, stepEvent{group: callEvents, order: at, Event: event.Event{Kind: kind, Turn: turnOfStep, Data: data}})
}

// publishNewCalls publishes the calls of a reply: those that may run, and those that have ended already.
func (e *stepEvents) publishNewCalls(calls callList, tools *toolRules) {
	for i, c := range calls {
		if c.Stage == Ended {
			e.publishEnd(i, c, c.Result, tools)
			continue
		}
		e.publishCall(i, event.KindToolValidated, event.ToolCall{Call: c.ID, Tool: c.Name, Class: c.Class, Child: c.Child})
	}
}

// publishProgress publishes the beginning or the end of a call, which is about to be recorded.
func (e *stepEvents) publishProgress(i int, old, c Call, tools *toolRules) {
	switch {
	case c.Stage == Running && (old.Stage != Running || old.Attempt != c.Attempt):
		if slices.Contains(e.restarted, callBase{c.ID, c.Attempt}) {
			break
		}
		e.publishCall(i, c.Kind.event(event.KindToolStarted, event.KindDelegationRequested),
			event.ToolCall{Call: c.ID, Tool: c.Name, Class: c.Class, Child: c.Child, Attempt: c.Attempt, Args: c.Args})
	case c.Stage == Starting && old.Stage == Running:
		e.restarted = append(e.restarted, callBase{c.ID, c.Attempt})
	case c.Stage == Ended && old.Stage != Ended:
		e.publishEnd(i, c, c.Result, tools)
	}
}

// publishEnd publishes the result of a call. Only the last result of a call in a step counts.
func (e *stepEvents) publishEnd(i int, c Call, r model.ToolResult, tools *toolRules) {
	e.list = slices.DeleteFunc(e.list, func(old stepEvent) bool {
		switch d := old.Data.(type) {
		case event.ToolCall:
			return old.group == callEvents && d.Call == c.ID && isEnd(old.Kind)
		case event.SkillLoaded:
			return d.Call == c.ID
		}
		return false
	})
	e.publishCall(i, c.Kind.event(event.KindToolFinished, event.KindDelegationFinished),
		event.ToolCall{Call: c.ID, Tool: c.Name, Child: c.Child, Error: r.Error, Bytes: len(r.Text), Text: r.Text, Synthetic: c.Synthetic})
	if c.Name == skillTool && !r.Error && tools.skills {
		var args struct{ Name string }
		decodeArgs(c.Args, &args)
		e.publishCall(i, event.KindSkillLoaded, event.SkillLoaded{Call: c.ID, Skill: clip.Text(args.Name, message.NameBytesShown), Bytes: len(r.Text)})
	}
}

// publishRefusal publishes the results of calls that do not run. Those that ended in an earlier
// step were published then.
func (e *stepEvents) publishRefusal(calls []Call, results []model.ToolResult, tools *toolRules) {
	for i, c := range calls {
		if e.replied || c.Stage != Ended {
			c.Synthetic = event.NeverStarted
			e.publishEnd(i, c, results[i], tools)
		}
	}
}

func isEnd(kind event.Kind) bool {
	return kind == event.KindToolFinished || kind == event.KindDelegationFinished
}
