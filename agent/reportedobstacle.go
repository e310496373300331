package agent

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/model"
)

// reportedBytesMax is the most bytes of an answer that only reports an obstacle: a longer one has results.
const reportedBytesMax = 600

// reportedPattern matches answers in which models say that they may not act.
var reportedPattern = lazyregexp.New(`(?i)\b(` + strings.Join([]string{
	`(need|needs|require|requires|without|awaiting|waiting for|don't have|do not have|lack) (\w+ ){0,3}(permission|permissions|approval)`,
	`(permission|permissions|approval) (\w+ ){0,3}(is|was|are|were) (required|needed|denied|missing|not granted|not given)`,
	`(grant|give) me (\w+ ){0,2}(permission|permissions|approval)`,
	`I (cannot|can't|could not|couldn't|may not|am not allowed to|am not permitted to|am unable to) (write|create|edit|modify|change|save|delete)`,
	`I'm (not allowed|not permitted|unable) to (write|create|edit|modify|change|save|delete)`,
}, "|") + `)\b`)

// reportedTarget is the target of the obstacle that an answer reports.
const reportedTarget = "answer"

// noteReportedObstacle records an obstacle that only the answer reports: the agent tried nothing that could have met
// it. An agent that changed something, or whose answer has a form or results, reports more than an obstacle.
func noteReportedObstacle(s *State) *State {
	text := strings.TrimSpace(s.joinedText())
	s.Obstacles = slices.DeleteFunc(slices.Clone(s.Obstacles), func(o obstacle) bool { return o.Target == reportedTarget })
	if !s.Task.LoopOptions.Obstacles || !s.Task.LoopOptions.DeclareFailure || len(s.Obstacles) > 0 ||
		s.Task.LoopOptions.Require.Schema != "" || len(text) > reportedBytesMax || hasChanged(s) || !reportedPattern.MatchString(text) {
		return s
	}
	s.Obstacles = []obstacle{{Target: reportedTarget, Call: "what the answer says", Why: clip.Text(oneLine(text), obstacleResult)}}
	return s
}

// hasChanged reports whether a call that may change something has succeeded.
func hasChanged(s *State) bool {
	names := map[string]string{}
	for _, m := range s.History[s.Recalled:] {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		if slices.ContainsFunc(m.Results, func(r model.ToolResult) bool {
			t, known := s.tools.spec(names[r.Call])
			return known && !r.Error && t.Class != model.Read
		}) {
			return true
		}
	}
	return false
}

// reportedQuestion asks an agent whose answer only reports an obstacle.
const reportedQuestion = "Your answer says that something was not permitted, and nothing was tried that was denied. If your task needs a change, make it with your tools now: a call that needs approval is put to a person, or denied, by itself." +
	"\nIf your task is done anyway, give your final answer again, begun with " + doneMark +
	". If it is not done, begin it with " + spec.FailedMark + " and the reason, or with " + spec.RefusedMark + " if you will not do it."
