package agent

import (
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/model"
)

// TestOnlyTheLastResultOfACallIsPublished: if a call gets a result twice in one step, observers
// hear neither of the first result nor of the skill that it seemed to load.
func TestOnlyTheLastResultOfACallIsPublished(t *testing.T) {
	var e stepEvents
	c := Call{ToolCall: model.ToolCall{ID: "1-0", Name: skillTool, Args: `{"name":"tax"}`}, callProgress: callProgress{Stage: Ended}}
	rules := &toolRules{skills: true}
	e.publishEnd(0, c, model.ToolResult{Text: "how to"}, rules)
	if len(e.list) != 2 || e.list[1].Kind != event.KindSkillLoaded {
		t.Fatalf("a loaded skill is published as %v", e.list)
	}
	e.publishEnd(0, c, model.ToolResult{Error: true, Text: "struck"}, rules)
	if len(e.list) != 1 || e.list[0].Kind != event.KindToolFinished {
		t.Errorf("after a failure in the same step: %v", e.list)
	}
}
