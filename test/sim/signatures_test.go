package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
)

// TestSignaturesGoToTheirIssuerOnly: an agent whose model is replaced twice, each
// of which signs what it thinks. Both adapters render each request, as both
// providers take it: the one that issued a signature gets it back, no other
// does, and what a failed model had begun to say is in none (A15, A16).
//
//behaviour:shows A16
func TestSignaturesGoToTheirIssuerOnly(t *testing.T) {
	j := newJudge(t)
	route := func(name string) spec.Model { return spec.Model{Name: name} }
	chain := []spec.Model{route("anthropic/one"), route("openai/two"), route("anthropic/three")}
	task := spec.Task{ID: spec.Root, Goal: "Compare.", System: "You compare.", Model: chain[0],
		Tools:       []model.ToolSpec{{Name: "look", Schema: `{"type":"object"}`, Class: model.Read}},
		LoopOptions: spec.LoopOptions{Fallbacks: chain[1:]}}
	var s agent.State
	var sent *agent.CallModel
	do := func(f agent.Fact) {
		var stepped agent.Output
		s, stepped = agent.Step(s, agent.Input{Activation: "a", Fact: f})
		for _, e := range stepped.Effects {
			if call, ok := e.(agent.CallModel); ok {
				sent = &call
				if err := j.request(t, call.Request); err != nil {
					t.Fatalf("%s refuses: %v", call.Model, err)
				}
			}
		}
	}
	// say is what the model in use answers, signed by it.
	say := func(text string, calls ...model.ToolCall) model.Reply {
		thought := fmt.Sprintf(`{"thinking":"hm","signature":%q}`, signedBy+sent.Model)
		return model.Reply{Message: model.Message{Text: text, Calls: calls,
			Opaque: []model.Opaque{{Issuer: sent.Model, Kind: "thinking", Data: []byte(thought)}}}}
	}
	turn := func() {
		do(agent.Granted{Reservation: s.Reservation, Output: 500, Calls: 9})
		do(agent.Replied{Reservation: s.Reservation, Reply: say("I look.", model.ToolCall{Name: "look", Args: "{}"})})
		do(agent.Returned{Call: s.Calls[0].ID, Attempt: 1, Text: "it is so"})
	}
	fail := func() {
		do(agent.Granted{Reservation: s.Reservation, Output: 500, Calls: 9})
		do(agent.Failed{Reservation: s.Reservation, Class: model.Auth, Reply: say("half a sentence of " + sent.Model)})
	}
	do(agent.Resumed{Activation: "a"})
	do(agent.Submitted{Task: task})
	for i, m := range chain {
		turn()
		turn()
		if sent.Model != m.Name {
			t.Fatalf("turn of %s went to %s", m.Name, sent.Model)
		}
		anthropicBody, openaiBody := string(j.wires[0].body), string(j.wires[1].body)
		if own := strings.Count(anthropicBody, signedBy+m.Name); strings.HasPrefix(m.Name, anthropic.Provider) != (own > 0) {
			t.Errorf("%s gets %d signatures of its own back", m.Name, own)
		}
		if strings.Count(anthropicBody, signedBy) != strings.Count(anthropicBody, signedBy+m.Name) || strings.Contains(openaiBody, signedBy) {
			t.Errorf("a signature goes to another model than %s", m.Name)
		}
		if strings.Contains(anthropicBody+openaiBody, "half a sentence") {
			t.Errorf("%s reads what a failed model had begun to say", m.Name)
		}
		if i < len(chain)-1 {
			fail()
		}
	}
	if struck := strings.Count(fmt.Sprint(s.History), "half a sentence"); struck != 2 {
		t.Errorf("the record has %d of 2 tombstones", struck)
	}
}
