package agent

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// resultTool is the tool that reads on in a long result. Like skillTool it takes a name that the
// model must have been told.
const resultTool = "read_result"

// otherTools returns the tool choice of a directive to a model that repeats calls of a tool, and the sentence
// that names what the choice forces. It forces one tool that only reads: the one that was not called for the
// longest time. Software must not choose among side effects, so without such a tool the model
// chooses one of those that the sentence names. A model without another tool may only answer.
func otherTools(s *State, halted string) (choice, instead string) {
	var reading, all []string
	for _, t := range s.Task.Tools {
		if t.Name == halted || s.tools.forbids(t.Name) || t.Poll || slices.Contains(s.Task.LoopOptions.Watch.Polling, t.Name) ||
			t.Name == askTool && !mayAskPeople(s) {
			continue
		}
		all = append(all, t.Name)
		if t.Class == model.Read && !slices.Contains([]string{delegateTool, askTool, skillTool, resultTool}, t.Name) {
			reading = append(reading, t.Name)
		}
	}
	switch {
	case len(reading) > 0:
		choice = s.LoopDetection.leastRecent(reading)
	case len(all) > 1:
		return model.ChoiceAny, "Call one of these tools now: " + strings.Join(all, ", ") + "."
	case len(all) == 0:
		return "", "Answer with what you have."
	default:
		choice = all[0]
	}
	return choice, "Call " + choice + " now, to find another way to what you need." //mutant:directive-without-its-tool
}

// leastRecent returns the first of the tools whose newest call is the longest ago.
func (h loopDetection) leastRecent(tools []string) string {
	oldest, found := len(h.Last), ""
	for _, name := range tools {
		at := -1 // of its newest call
		for i, c := range h.Last {
			if c.Tool == name {
				at = i
			}
		}
		if at < oldest {
			oldest, found = at, name
		}
	}
	return found
}
