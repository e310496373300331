package orchestrator_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/model"
)

// The rule that stands for an agent of another program: the task, the answers of people, and what its caller misses go to that
// agent, and its words are the answer.
func TestForeignRule(t *testing.T) {
	t.Parallel()
	user := func(text string) model.Message { return model.Message{Role: model.User, Text: text} }
	said := func(text string) model.Message { return model.Message{Role: model.Assistant, Text: text} }
	called := func(tool, args string) model.Message {
		return model.Message{Role: model.Assistant, Calls: []model.ToolCall{{ID: "c", Name: tool, Args: args}}}
	}
	result := func(text string, failed bool) model.Message {
		return model.Message{Role: model.ToolRole, Results: []model.ToolResult{{Call: "c", Text: text, Error: failed}}}
	}
	question := orchestrator.WriteQuestion("q1", "Which?")
	both := []model.ToolSpec{{Name: "delegate"}, {Name: "ask_human"}}
	for name, k := range map[string]struct {
		messages []model.Message
		tools    []model.ToolSpec
		closing  bool
		text     string
		call     string
	}{
		"task":              {[]model.Message{user("A.")}, both, false, "", `delegate {"agent":"cc/d/r","task":"A."}`},
		"answer":            {[]model.Message{user("A."), called("delegate", "{}"), result("safe", false)}, both, false, "safe", ""},
		"failure":           {[]model.Message{user("A."), called("delegate", "{}"), result("gone", true)}, both, false, "[failed] gone", ""},
		"note of a hook":    {[]model.Message{user("A."), called("delegate", "{}"), result("safe", false), user("note")}, both, false, "safe", ""},
		"question":          {[]model.Message{user("A."), called("delegate", "{}"), result(question, false)}, both, false, "", `ask_human {"question":"cc/d/r asks: Which?"}`},
		"nobody to ask":     {[]model.Message{user("A."), called("delegate", "{}"), result(question, false)}, both[:1], false, "[failed] the agent asked a question that nobody could answer: Which?", ""},
		"no answer":         {[]model.Message{user("A."), called("ask_human", `{"question":"Which?"}`), result("nobody", true)}, both, false, "[failed] the agent asked a question, and nobody has answered it: nobody\n" + `{"question":"Which?"}`, ""},
		"what is missing":   {[]model.Message{user("A."), said("safe"), user("Not JSON.")}, both, false, "", `delegate {"agent":"cc/d/r","task":"A.\n\nYou have answered:\nsafe\n\nNot JSON."}`},
		"closing":           {[]model.Message{user("A.")}, nil, true, "[failed] the agent was not called", ""},
		"closing an answer": {[]model.Message{user("A."), said("safe"), user("Sum up.")}, nil, true, "safe", ""},
	} {
		r, err := orchestrator.NewForeign().Complete(t.Context(), model.Request{Messages: k.messages, Tools: k.tools, NoTools: k.closing, Caller: model.Caller{Name: "cc/d/r"}}, nil)
		call := ""
		for _, c := range r.Message.Calls {
			call = c.Name + " " + c.Args
		}
		if err != nil || r.Message.Text != k.text || call != k.call {
			t.Errorf("%s: %q %q %v", name, r.Message.Text, call, err)
		}
	}
	asked := []model.Message{user("A."), called("delegate", "{}"), result(question, false),
		{Role: model.Assistant, Calls: []model.ToolCall{{ID: "d", Name: "ask_human"}}},
		{Role: model.ToolRole, Results: []model.ToolResult{{Call: "d", Text: "a person answered: The left one."}}}}
	r, err := orchestrator.NewForeign().Complete(t.Context(), model.Request{Messages: asked, Tools: both, Caller: model.Caller{Name: "cc/d/r"}}, nil)
	if err != nil || len(r.Message.Calls) != 1 || !strings.Contains(r.Message.Calls[0].Args, `"question":"q1","task":"The left one."`) {
		t.Errorf("%+v %v", r.Message, err)
	}
}
