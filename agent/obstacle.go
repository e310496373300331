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

// An obstacle is something that the agent wanted to do and that was not done: a call that a rule or a hook denied, a file
// that could not be written, a tool with a side effect that failed, or a child that refused or failed. It is gone once the
// same thing succeeds. An agent that claims completion despite an obstacle says what is true: its task is done anyway
// (doneMark), or it failed or refuses (spec.FailedMark, spec.RefusedMark). Any other answer is no success.
type obstacle struct {
	Target string // what a later success must concern
	Text   string // the call and its result, for the model and the outcome
}

// doneMark begins the final answer of an agent whose task is done although there are obstacles.
const doneMark = "[done]"

const (
	obstaclesMax     = 16 // that are remembered: the newest
	obstacleAsksMax  = 2  // how often one agent is asked about obstacles
	obstacleArgs     = 160
	obstacleResult   = 300
	obstaclesInWhole = 3 // named in the detail of an outcome
)

// noteObstacles records what the calls of a batch met, and drops what has succeeded meanwhile.
func noteObstacles(s State, calls []Call) State {
	if !s.Task.LoopOptions.Obstacles {
		return s
	}
	list := slices.Clone(s.Obstacles)
	for _, c := range calls {
		target, fails := obstacleTarget(c)
		if fails || !c.Result.Error {
			list = slices.DeleteFunc(list, func(o obstacle) bool { return o.Target == target })
		}
		if !fails {
			continue
		}
		list = lastItems(append(list, obstacle{Target: target, Text: describeObstacle(c)}), obstaclesMax)
	}
	s.Obstacles = list
	return s
}

// obstacleTarget returns what a call was about, and whether it is an obstacle that it came to nothing. A read that
// fails, a command that exits with an error, and a call that the model got wrong are none: they are information.
func obstacleTarget(c Call) (target string, fails bool) {
	ran := c.Attempt > 0
	switch {
	case c.isDelegation():
		var args delegateArgs
		decodeArgs(c.Args, &args)
		return "agent " + args.Agent, c.Result.Error
	case permission.WrittenPath(c.Name, c.Args) != "":
		return "file " + permission.WrittenPath(c.Name, c.Args), c.Result.Error && (c.Denied || ran)
	case c.Denied || permission.IsShell(c.Name):
		return fmt.Sprintf("call %d", callTarget(c)), c.Denied
	default:
		return "tool " + c.Name, c.Result.Error && ran && c.Class != model.Read && c.Name != askTool
	}
}

// confirmEnd asks an agent that claims completion despite obstacles whether its task is done, at most obstacleAsksMax times. busy is
// false if the loop may stop.
func confirmEnd(s State) (next State, fx []Effect, busy bool) {
	if len(s.Obstacles) == 0 { //mutant:obstacle-is-success
		return s, nil, false
	}
	if _, isDone := cutMark(s.joinedText(), doneMark); isDone {
		s.Obstacles, s.Goal.IsConfirmed = nil, true
		return s, nil, false
	}
	if ending, _ := s.reachedLimit(); ending != "" || s.Goal.Asked >= obstacleAsksMax || s.Goal.AskedAbout == s.Obstacles[len(s.Obstacles)-1].Target {
		next, fx = finishAgent(s, spec.Outcome{Reason: spec.Failed, Text: s.finalAnswer(), Partial: true,
			Detail: clip.Marked("not carried out: "+strings.Join(obstacleTexts(lastItems(s.Obstacles, obstaclesInWhole)), "; "), failureDetailMax, "…")})
		return next, fx, true
	}
	s.Goal.Asked++
	s.Goal.AskedAbout = s.Obstacles[len(s.Obstacles)-1].Target
	text := "These calls were not carried out:\n- " + strings.Join(obstacleTexts(s.Obstacles), "\n- ") +
		"\nIf your task is done anyway, give your final answer again, begun with " + doneMark +
		". If it is not done, begin it with " + spec.FailedMark + " and the reason, or with " + spec.RefusedMark + " if you will not do it. Any other answer counts as failed."
	next, fx = endTurn(sendOnwards(s, text), spec.CriteriaUnmet)
	return next, fx, true
}

// describeObstacle describes a call and its result on one line, for the model and for people.
func describeObstacle(c Call) string {
	shows, _, _ := strings.Cut(permission.Show(c.Name, c.Args), "\n")
	return clip.Text(shows, obstacleArgs) + ": " + clip.Text(strings.Join(strings.Fields(c.Result.Text), " "), obstacleResult)
}

func obstacleTexts(list []obstacle) []string {
	texts := make([]string, len(list))
	for i, o := range list {
		texts[i] = o.Text
	}
	return texts
}
