package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/model"
)

// An obstacle is something that the agent wanted to do and that was not done: a call that a rule or a hook
// denied, a call of a tool of an MCP server that is not there, a file that could not be written, a tool with a side
// effect that failed, or a child that refused or failed. It is gone once the same thing succeeds. An agent that claims
// completion despite an obstacle says what is true: its task is done anyway (doneMark), or it failed or refuses
// (spec.FailedMark, spec.RefusedMark). Any other answer is not a success.
type obstacle struct {
	Target string `msgpack:"t"` // what a later success must concern
	Call   string `msgpack:"c"` // on one line
	Why    string `msgpack:"w"` // on one line: what denied it, or the words of a tool or an agent
	Denied bool   `msgpack:"d,omitempty"`
}

// question is the obstacle in a message of the loop. Words of tools and agents are not in it: the model has read them
// as theirs, and in a message of the loop they could pass for an instruction.
func (o obstacle) question() string {
	if o.Denied {
		return o.Call + ": " + o.Why
	}
	return o.Call + ": failed"
}

// obstaclesDetail describes obstacles in the outcome, for people. It says once why calls in a row failed for the same reason.
func obstaclesDetail(list []obstacle) string {
	var b strings.Builder
	for i, o := range list {
		b.WriteString(o.Call)
		switch {
		case i+1 == len(list):
			b.WriteString(": " + o.Why)
		case list[i+1].Why == o.Why:
			b.WriteString(", ")
		default:
			b.WriteString(": " + o.Why + "; ")
		}
	}
	return b.String()
}

// doneMark begins the final answer of an agent whose task is done although there are obstacles.
const doneMark = "[done]"

const (
	obstaclesMax     = 64  // that are remembered; later ones are not
	obstacleAsksMax  = 2   // how often one agent is asked about obstacles
	obstacleArgs     = 160 // bytes of a call that its text shows
	obstacleResult   = 300 // bytes of its result
	obstaclesInWhole = 3   // named in the detail of an outcome
	obstaclesListed  = 16  // named to the model
)

// noteObstacles records what the calls of a batch met, and drops what has succeeded meanwhile. A success drops only
// obstacles of earlier batches: the calls of one batch are about different things.
func noteObstacles(s *State, calls []Call) *State {
	if !s.Task.LoopOptions.Obstacles {
		return s
	}
	list := slices.Clone(s.Obstacles)
	for _, c := range calls {
		if c.Result.Error || startsChild(c) {
			continue
		}
		target, _ := obstacleTarget(c)
		list = slices.DeleteFunc(list, func(o obstacle) bool { return o.Target == target || o.Target == toolTarget(c) })
	}
	for _, c := range calls {
		if target, isObstacle := obstacleTarget(c); isObstacle && remembers(list, target) {
			list = addObstacle(list, newObstacle(target, c))
		}
	}
	s.Obstacles = list
	return s
}

// noteFailedChild records that a child in the background has failed.
func noteFailedChild(s *State, child backgroundChild, f Messaged) *State {
	if s.Task.LoopOptions.Obstacles && f.Error {
		s.Obstacles = addObstacle(slices.Clone(s.Obstacles), obstacle{Target: "child " + string(child.Child),
			Call: fmt.Sprintf("background agent %s (%s)", child.Name, child.Child), Why: oneLine(f.Text)})
	}
	return s
}

// addObstacle adds an obstacle in the place of an older one about the same target.
func addObstacle(list []obstacle, o obstacle) []obstacle {
	list = slices.DeleteFunc(list, func(old obstacle) bool { return old.Target == o.Target })
	if len(list) >= obstaclesMax {
		return list
	}
	return append(list, o)
}

// remembers reports whether an obstacle about a target enters the list: addObstacle drops others.
func remembers(list []obstacle, target string) bool {
	return len(list) < obstaclesMax || slices.ContainsFunc(list, func(o obstacle) bool { return o.Target == target })
}

// startsChild reports whether a call only started a child, whose answer comes later.
func startsChild(c Call) bool {
	var args delegateArgs
	decodeArgs(c.Args, &args)
	return c.Kind.isDelegation() && args.Background
}

// obstacleTarget returns what a call was about, and whether it is an obstacle that it came to nothing. A read that
// fails, and a command that exits with an error, are none: they are information. Neither is a call that the model got
// wrong, by the tool's name or its arguments, unless it was to write a file: nothing but a later write makes up for it.
// A handoff that was not accepted for another reason than a denial is none: the agent still has the conversation, and
// its answer or a later handoff makes up for it.
func obstacleTarget(c Call) (target string, isObstacle bool) {
	callKey, toolKey := fmt.Sprintf("call %d", callTarget(c)), toolTarget(c)
	path := permission.WrittenPath(c.Name, c.Args)
	switch {
	case c.Disposition == refusedByPerson:
		return callKey, false
	case c.Kind == handoffCall:
		return toolKey, c.Disposition == refusedByRule
	case c.Kind.isDelegation():
		return callKey, c.Result.Error
	case path == ".": // the arguments name no file
		return toolKey, c.Result.Error
	case path != "":
		return "file " + path, c.Result.Error
	case c.Disposition == refusedByRule || permission.IsShell(c.Name):
		return callKey, c.Disposition == refusedByRule
	}
	ran := c.Attempt > 0
	return toolKey, c.Result.Error && ran && c.Class != model.Read && c.Kind != questionCall
}

// toolTarget is the target of an obstacle that any success of the tool removes.
func toolTarget(c Call) string { return "tool " + c.Name }

// confirmEnd asks an agent that claims completion despite obstacles whether its task is done, at most obstacleAsksMax
// times. busy is false if the loop may stop.
func confirmEnd(s *State) (next *State, fx []Effect, busy bool) {
	s = noteReportedObstacle(s)
	text := s.joinedText()
	_, isDone := cutMark(text, doneMark)
	if len(s.Obstacles) == 0 && !(isDone && s.Goal.AskedAbout == reportedTarget) { //mutant:obstacle-is-success
		return s, nil, false
	}
	if isDone {
		s.Obstacles, s.Goal.IsConfirmed = nil, true
		return s, nil, false
	}
	newest := s.Obstacles[len(s.Obstacles)-1].Target
	again := s.Goal.AskedAbout == newest
	if ending, _ := s.reachedLimit(); ending != "" || s.Goal.Asked >= obstacleAsksMax || again && !namesMark(text) {
		next, fx = finishAgent(s, spec.Outcome{Reason: spec.Failed, Text: s.finalAnswer(), Partial: true,
			Detail: clip.Marked("not carried out: "+obstaclesDetail(lastItems(s.Obstacles, obstaclesInWhole)), failureDetailMax, "…")})
		return next, fx, true
	}
	s.Goal.Asked++
	s.Goal.AskedAbout = newest
	if s.Goal.Answer == "" || !again {
		s.Goal.Answer = s.finalAnswer()
	}
	next, fx = endTurn(sendOnwards(s, obstacleQuestion(s.Obstacles, again)), spec.CriteriaUnmet)
	return next, fx, true
}

// obstacleQuestion asks an agent whether its task is done. again: its last answer had a mark in another place.
func obstacleQuestion(list []obstacle, again bool) string {
	switch {
	case !again && list[0].Target == reportedTarget:
		return reportedQuestion
	case again:
		return "The first word of your answer must be " + doneMark + ", " + spec.FailedMark + " or " + spec.RefusedMark + ", exactly so, with nothing before it."
	}
	return "These calls were not carried out:\n- " + joinObstacles(lastItems(list, obstaclesListed), obstacle.question, "\n- ") +
		"\nIf your task is done anyway, give your final answer again, begun with " + doneMark +
		". If it is not done, begin it with " + spec.FailedMark + " and the reason, or with " + spec.RefusedMark + " if you will not do it. Any other answer counts as failed."
}

// namesMark reports whether an answer has a mark in another place than at its beginning.
func namesMark(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{doneMark, spec.FailedMark, spec.RefusedMark}, func(mark string) bool { return strings.Contains(text, mark) })
}

// newObstacle describes a call and what it came to.
func newObstacle(target string, c Call) obstacle {
	shows, _, _ := strings.Cut(permission.Show(c.Name, c.Args), "\n")
	return obstacle{Target: target, Call: clip.Text(shows, obstacleArgs), Why: oneLine(c.Result.Text), Denied: c.Disposition == refusedByRule}
}

func oneLine(text string) string {
	return clip.Text(strings.Join(strings.Fields(text), " "), obstacleResult)
}

func joinObstacles(list []obstacle, describe func(obstacle) string, between string) string {
	texts := make([]string, len(list))
	for i, o := range list {
		texts[i] = describe(o)
	}
	return strings.Join(texts, between)
}
