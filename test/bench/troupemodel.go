package main

import (
	"context"
	"fmt"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// agentPrompt is the system prompt of every agent that has one.
const agentPrompt = "Look at the rows."

// troupeModel plays the script in the process.
type troupeModel struct{ setup setup }

func (m troupeModel) Complete(ctx context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
	if m.setup.script.kind == scriptWait {
		m.setup.waiting()
		<-ctx.Done()
		return model.Reply{}, ctx.Err()
	}
	result := ""
	if last := r.Messages[len(r.Messages)-1]; len(last.Results) > 0 {
		result = last.Results[0].Text
	}
	next := m.setup.script.next(result)
	message := model.Message{Role: model.Assistant, Text: next.text}
	if next.row > 0 {
		message.Calls = []model.ToolCall{{Name: lookName, Args: lookJSON(next.row)}}
	}
	if next.question != "" {
		message.Calls = []model.ToolCall{{Name: "ask_human", Args: fmt.Sprintf(`{"question":%q}`, next.question)}}
	}
	for i := range next.children {
		message.Calls = append(message.Calls, model.ToolCall{Name: "delegate", Args: fmt.Sprintf(`{"agent":%q,"task":%q}`, childName, childTask(i))})
	}
	stop := model.StopEnd
	if len(message.Calls) > 0 {
		stop = model.StopTools
	}
	return model.Reply{Message: message, Stop: stop, Usage: model.Usage{Input: 20, Output: 5}, UsageKnown: true}, nil
}

// childModel plays the script of the children of a fan-out.
func childModel() troupeModel { return troupeModel{setup{script: script{kind: scriptLook, count: 1}}} }

func newTroupeLook() tool.Tool {
	return tool.Func(lookName, lookDescription, model.Read, func(_ context.Context, a lookArgs) (string, error) { return lookUp(a.Row), nil })
}
