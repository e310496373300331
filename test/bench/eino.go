package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	einoopenai "github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/adk"
	einomodel "github.com/cloudwego/eino/components/model"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
)

// einoModel plays the script in the process.
type einoModel struct{ setup setup }

func (m einoModel) WithTools([]*schema.ToolInfo) (einomodel.ToolCallingChatModel, error) {
	return m, nil
}

func (m einoModel) Generate(ctx context.Context, input []*schema.Message, _ ...einomodel.Option) (*schema.Message, error) {
	if m.setup.script.kind == scriptWait {
		m.setup.waiting()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	result := ""
	if last := input[len(input)-1]; last.Role == schema.Tool {
		result = last.Content
	}
	r := m.setup.script.next(result)
	var calls []schema.ToolCall
	if r.row > 0 {
		calls = []schema.ToolCall{einoCall("c"+strconv.Itoa(r.row), lookName, lookJSON(r.row))}
	}
	for i := range r.children {
		calls = append(calls, einoCall("d"+strconv.Itoa(i), childName, fmt.Sprintf(`{"request":%q}`, childTask(i))))
	}
	return schema.AssistantMessage(r.text, calls), nil
}

func (m einoModel) Stream(ctx context.Context, input []*schema.Message, opts ...einomodel.Option) (*schema.StreamReader[*schema.Message], error) {
	message, err := m.Generate(ctx, input, opts...)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.Message{message}), nil
}

func einoCall(id, name, args string) schema.ToolCall {
	return schema.ToolCall{ID: id, Type: "function", Function: schema.FunctionCall{Name: name, Arguments: args}}
}

// newEinoModel returns the scripted model, or the client of eino-ext with the connections of
// the floor.
func newEinoModel(ctx context.Context, s setup) (einomodel.ToolCallingChatModel, error) {
	if s.url == "" {
		return einoModel{s}, nil
	}
	return einoopenai.NewChatModel(ctx, &einoopenai.ChatModelConfig{APIKey: "none", BaseURL: s.url, Model: s.script.name, HTTPClient: newHTTPClient(s.agents)})
}

func newEinoLook() (einotool.InvokableTool, error) {
	return utils.InferTool(lookName, lookDescription, func(_ context.Context, a lookArgs) (string, error) { return lookUp(a.Row), nil })
}

// einoReact is the ReAct agent of flow/agent/react.
type einoReact struct {
	agent  *react.Agent
	stream bool
}

func openEinoReact(ctx context.Context, s setup) (runner, error) {
	look, err := newEinoLook()
	if err != nil {
		return nil, fmt.Errorf("eino: %w", err)
	}
	tools := []einotool.BaseTool{look}
	if s.script.kind == scriptFan {
		child, err := newEinoReact(ctx, setup{script: script{kind: scriptLook, count: 1}}, tools)
		if err != nil {
			return nil, err
		}
		tools = append(tools, einoChild{child})
	}
	agent, err := newEinoReact(ctx, s, tools)
	if err != nil {
		return nil, err
	}
	return &einoReact{agent: agent, stream: s.url != ""}, nil
}

func newEinoReact(ctx context.Context, s setup, tools []einotool.BaseTool) (*react.Agent, error) {
	chat, err := newEinoModel(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("eino: %w", err)
	}
	agent, err := react.NewAgent(ctx, &react.AgentConfig{ToolCallingModel: chat, MaxStep: 2*s.script.count + 10,
		ToolsConfig: compose.ToolsNodeConfig{Tools: tools}})
	if err != nil {
		return nil, fmt.Errorf("eino: %w", err)
	}
	return agent, nil
}

// einoChild is a ReAct agent as a tool of another.
type einoChild struct{ agent *react.Agent }

func (c einoChild) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: childName, Desc: "Helps.", ParamsOneOf: schema.NewParamsOneOfByParams(map[string]*schema.ParameterInfo{
		"request": {Type: schema.String, Desc: "the task", Required: true}})}, nil
}

func (c einoChild) InvokableRun(ctx context.Context, args string, _ ...einotool.Option) (string, error) {
	var a struct {
		Request string `json:"request"`
	}
	if err := json.Unmarshal([]byte(args), &a); err != nil {
		return "", fmt.Errorf("eino: arguments: %w", err)
	}
	message, err := c.agent.Generate(ctx, []*schema.Message{schema.UserMessage(a.Request)})
	if err != nil {
		return "", err
	}
	return message.Content, nil
}

func (e *einoReact) run(ctx context.Context) error {
	task := []*schema.Message{schema.UserMessage("do it")}
	if !e.stream {
		message, err := e.agent.Generate(ctx, task)
		if err != nil {
			return fmt.Errorf("eino: %w", err)
		}
		return checkAnswer(message.Content)
	}
	stream, err := e.agent.Stream(ctx, task)
	if err != nil {
		return fmt.Errorf("eino: %w", err)
	}
	message, err := schema.ConcatMessageStream(stream)
	if err != nil {
		return fmt.Errorf("eino: %w", err)
	}
	return checkAnswer(message.Content)
}

func (e *einoReact) close() error { return nil }

// einoADK is a ChatModelAgent behind a Runner.
type einoADK struct{ runner *adk.Runner }

func openEinoADK(ctx context.Context, s setup) (runner, error) {
	look, err := newEinoLook()
	if err != nil {
		return nil, fmt.Errorf("eino: %w", err)
	}
	tools := []einotool.BaseTool{look}
	if s.script.kind == scriptFan {
		child, err := newEinoADK(ctx, childName, setup{script: script{kind: scriptLook, count: 1}}, tools)
		if err != nil {
			return nil, err
		}
		tools = append(tools, adk.NewAgentTool(ctx, child))
	}
	agent, err := newEinoADK(ctx, "boss", s, tools)
	if err != nil {
		return nil, err
	}
	return &einoADK{adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent, EnableStreaming: s.url != ""})}, nil
}

func newEinoADK(ctx context.Context, name string, s setup, tools []einotool.BaseTool) (*adk.ChatModelAgent, error) {
	chat, err := newEinoModel(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("eino: %w", err)
	}
	agent, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{Name: name, Description: "Does it.", Instruction: agentPrompt, Model: chat,
		MaxIterations: s.script.count + 2, ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: tools}}})
	if err != nil {
		return nil, fmt.Errorf("eino: %w", err)
	}
	return agent, nil
}

// errNoAnswer: the events of an agent ended without an answer.
var errNoAnswer = errors.New("bench: no answer")

func (e *einoADK) run(ctx context.Context) error {
	events, answer := e.runner.Query(ctx, "do it"), (*schema.Message)(nil)
	for {
		event, more := events.Next()
		if !more {
			break
		}
		if event.Err != nil {
			return fmt.Errorf("eino: %w", event.Err)
		}
		if event.Output == nil || event.Output.MessageOutput == nil {
			continue
		}
		message, err := event.Output.MessageOutput.GetMessage()
		if err != nil {
			return fmt.Errorf("eino: %w", err)
		}
		answer = message
	}
	if answer == nil {
		return errNoAnswer
	}
	return checkAnswer(answer.Content)
}

func (e *einoADK) close() error { return nil }
