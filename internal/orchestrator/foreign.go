package orchestrator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// Foreign is the route, without its provider, of agents that represent an agent of another program.
const Foreign = "foreign"

// ForeignPrompt is the system prompt of such an agent. The loop reads the mark in it.
const ForeignPrompt = "Give the task to the agent of another program whose name is yours, and pass on its answer. Begin the answer with " +
	failedMark + " if it has none."

// NewForeign returns the client of the route Foreign. It calls the agent of another program whose name
// its caller has: with the task, with the answers of people to what that agent asks, and with what its
// caller misses in its answer.
func NewForeign() model.Client { return foreignClient{} }

type foreignClient struct{}

const askTool = toolname.AskHuman

// failedMark begins the answer of an agent that has failed.
const failedMark = "[failed]"

// Complete takes the next step. The call is not billed.
func (foreignClient) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, &model.Error{Class: model.Aborted, Unbilled: true, Message: err.Error()}
	}
	reply := model.Reply{Message: model.Message{Role: model.Assistant}, Stop: model.StopEnd, UsageKnown: true, Served: "builtin/" + Foreign}
	text, call := nextForeignStep(req)
	if reply.Message.Text = text; call.Name != "" {
		reply.Message.Calls, reply.Stop = []model.ToolCall{call}, model.StopTools
	}
	if emit != nil && text != "" {
		emit(model.Delta{Kind: model.TextDelta, Text: text})
	}
	return reply, nil
}

// nextForeignStep decides what comes after the transcript: a call, or else the answer.
func nextForeignStep(req model.Request) (answer string, call model.ToolCall) {
	at := lastStep(req.Messages)
	switch {
	case at < 0 && req.NoTools:
		return failedMark + " the agent was not called", call
	case at < 0:
		return "", foreignCall(req.Caller.Name, firstTask(req.Messages), "")
	}
	m := req.Messages[at]
	if m.Role == model.Assistant { // an answer, and what its caller says to it
		said := laterTexts(req.Messages[at+1:])
		if req.NoTools || said == "" {
			return m.Text, call
		}
		task := clipText(firstTask(req.Messages), TaskBytesMax/3) + "\n\nYou have answered:\n" + clipText(m.Text, TaskBytesMax/3) + "\n\n" + clipText(said, TaskBytesMax/4)
		return "", foreignCall(req.Caller.Name, task, "")
	}
	result := m.Results[len(m.Results)-1]
	made := callOf(req.Messages[:at], result.Call)
	question, _, isQuestion := readQuestion(result.Text)
	switch {
	case result.Error && made.Name == askTool:
		return failedMark + " the agent asked a question, and nobody has answered it: " + result.Text + "\n" + made.Args, call
	case result.Error:
		return failedMark + " " + result.Text, call
	case made.Name == askTool && !req.NoTools:
		_, open, _ := readQuestion(lastResultOf(req.Messages[:at], delegateTool))
		return "", foreignCall(req.Caller.Name, strings.TrimPrefix(result.Text, "a person answered: "), open)
	case isQuestion && !req.NoTools && slices.ContainsFunc(req.Tools, func(t model.ToolSpec) bool { return t.Name == askTool }):
		return "", model.ToolCall{Name: askTool, Args: encodeArgs(map[string]any{"question": req.Caller.Name + " asks: " + clipText(question, questionShown)})}
	case isQuestion, made.Name == askTool:
		return failedMark + " the agent asked a question that nobody could answer: " + question, call
	}
	return cmp.Or(result.Text, "(the agent has ended its answer without a text)"), call
}

// questionShown bounds the question of an agent of another program in a question to a person.
const questionShown = 3 << 10

// lastStep is the position of the newest answer or result; -1: there is none.
func lastStep(messages []model.Message) int {
	for i, m := range slices.Backward(messages) {
		if !m.Tombstone && (m.Role == model.ToolRole && len(m.Results) > 0 || m.Role == model.Assistant && len(m.Calls) == 0) {
			return i
		}
	}
	return -1
}

// firstTask is the task: the first message of the user.
func firstTask(messages []model.Message) string {
	for _, m := range messages {
		if m.Role == model.User && !m.Tombstone {
			return m.Text
		}
	}
	return ""
}

// laterTexts joins the later messages to the agent.
func laterTexts(messages []model.Message) string {
	var texts []string
	for _, m := range messages {
		if m.Role == model.User && !m.Tombstone {
			texts = append(texts, m.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// callOf finds a call by its id.
func callOf(messages []model.Message, id string) model.ToolCall {
	for _, m := range slices.Backward(messages) {
		for _, c := range m.Calls {
			if c.ID == id {
				return c
			}
		}
	}
	return model.ToolCall{}
}

// lastResultOf is the text of the newest result of a tool.
func lastResultOf(messages []model.Message, tool string) string {
	for i, m := range slices.Backward(messages) {
		for _, r := range m.Results {
			if callOf(messages[:i], r.Call).Name == tool {
				return r.Text
			}
		}
	}
	return ""
}

// foreignCall is the call of the agent of another program. question is the one that the task answers; "": none.
func foreignCall(agent, task, question string) model.ToolCall {
	args := map[string]any{"agent": agent, "task": task}
	if question != "" {
		args["question"] = question
	}
	return model.ToolCall{Name: delegateTool, Args: encodeArgs(args)}
}

// encodeArgs encodes arguments of a call, which are texts.
func encodeArgs(args map[string]any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(args); err != nil {
		return "{}" // texts can be encoded
	}
	return strings.TrimSpace(b.String())
}

// questionForm is the result of a call whose agent asks: see WriteQuestion.
var questionForm = lazyregexp.New(`(?s)^\[question ([a-z0-9]{1,64})\]\n(.*)$`)

// WriteQuestion is the result of a call whose agent asks a question, and waits for the answer under that id.
func WriteQuestion(id, question string) string { return "[question " + id + "]\n" + question }

// readQuestion reads the text of WriteQuestion. An agent may forge such a text: its answer then
// finds no open question, and the call fails.
func readQuestion(result string) (question, id string, ok bool) {
	m := questionForm.FindStringSubmatch(result)
	if m == nil {
		return "", "", false
	}
	return clip.Text(m[2], questionBytes), m[1], true
}

const questionBytes = 16 << 10
