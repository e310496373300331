package agent_test

import (
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// Arguments with five faults give one transcript, in a run and in each replay of it.
func TestArgumentErrorsAreDeterministic(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"e":{"type":"string"}}}`,
		`{"type":"object","additionalProperties":false}`,
	} {
		texts := map[string]bool{}
		for range 200 {
			task := spec.Task{ID: spec.Root, Goal: "Act.", Tools: []model.ToolSpec{{Name: "act", Schema: schema}}, Limits: spec.Limits{Turns: 3}}
			s := stepAgent(agent.State{}, agent.Submitted{Task: task})
			s = stepAgent(s, agent.Granted{Reservation: s.Reservation, Output: 4096, Calls: 64})
			call := model.ToolCall{Name: "act", Args: `{"a":1,"b":2,"c":3,"d":4,"e":5}`}
			s = stepAgent(s, agent.Replied{Reservation: s.Reservation, Reply: model.Reply{Message: model.Message{Calls: []model.ToolCall{call}}}})
			last := s.History[len(s.History)-1]
			if len(last.Results) != 1 || !last.Results[0].Error {
				t.Fatalf("%+v", last)
			}
			texts[last.Results[0].Text] = true
		}
		if len(texts) != 1 {
			t.Errorf("%d results of one call: %v", len(texts), texts)
		}
	}
}
