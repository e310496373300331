package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// The routes, without their provider.
const (
	Chain       = "chain"
	Consolidate = "consolidate"
	Delegate    = toolname.Delegate
)

// RouteNames lists them.
func RouteNames() []string { return []string{Chain, Consolidate, Delegate} }

// New returns the client of a route.
func New(route string) model.Client { return planClient{route} }

type planClient struct{ route string }

const delegateTool = toolname.Delegate

// Bounds on answers that are passed on, so that they fit a log entry.
const (
	TaskBytesMax   = 24 << 10 // to one agent
	AnswerBytesMax = 80 << 10 // of the plan
	argsBytesMax   = 30 << 10 // of a call, encoded
)

// Complete takes the next step of the plan. The call is not billed.
func (c planClient) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, &model.Error{Class: model.Aborted, Unbilled: true, Message: err.Error()}
	}
	reply := model.Reply{Message: model.Message{Role: model.Assistant}, Stop: model.StopEnd, UsageKnown: true, Served: "builtin/" + c.route}
	text, calls, whole := c.nextReply(req)
	reply.Message.Text = text
	switch {
	case len(calls) > 0:
		reply.Message.Calls, reply.Stop = calls, model.StopTools
	case !whole:
		// An incomplete text must not count as the answer: the run ends partial.
		reply.Stop = model.StopRefusal
	}
	if emit != nil && text != "" {
		emit(model.Delta{Kind: model.TextDelta, Text: text})
	}
	return reply, nil
}

// nextReply returns the next reply: calls, or a text that is the whole answer or a part of it.
func (c planClient) nextReply(req model.Request) (text string, calls []model.ToolCall, whole bool) {
	p, since := c.findPlan(req.Messages)
	if p.Stages == nil {
		return c.usageText(), nil, false
	}
	if wrong := p.explainInvalid(); wrong != "" {
		return wrong + ".\n" + c.usageText(), nil, false
	}
	done := readProgress(p, req.Messages[since:])
	if n := len(done); n > 0 {
		stage := done[n-1]
		none := !slices.ContainsFunc(stage, func(a stepAnswer) bool { return a.done && !a.failed })
		if none || n == len(p.Stages) || req.NoTools {
			return finalReply(p, done)
		}
	}
	if req.NoTools {
		return "Nothing was delegated yet.", nil, false
	}
	if !slices.ContainsFunc(req.Tools, func(t model.ToolSpec) bool { return t.Name == delegateTool }) {
		return "I follow plans by delegating, and I was not offered the tool delegate.", nil, false
	}
	for _, s := range p.Stages[len(done)] {
		// There may be a history to pass on.
		calls = append(calls, model.ToolCall{Name: delegateTool, Args: delegationArgs(p, s, done, c.route == Delegate && since > 0)})
	}
	return fmt.Sprintf("Step %d of %d: %s.", len(done)+1, len(p.Stages), strings.Join(Plan{Stages: p.Stages[len(done) : len(done)+1]}.AgentNames(), ", ")), calls, false
}

// findPlan returns the newest plan in the transcript, and its position: earlier messages are
// history. A plan opens a conversation, or follows an answer; other messages of the user
// are not plans.
func (c planClient) findPlan(messages []model.Message) (Plan, int) {
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		opens := i == 0 || messages[i-1].Role == model.Assistant && len(messages[i-1].Calls) == 0
		if m.Role == model.User && !m.Tombstone && opens {
			if p, ok := ParsePlan(c.route, m.Text); ok {
				return p, i
			}
		}
	}
	return Plan{}, 0
}

// delegationArgs returns the arguments of a delegation that fit an entry: it shortens the
// answers until they do.
func delegationArgs(p Plan, s Step, done [][]stepAnswer, fork bool) string {
	for room := TaskBytesMax; ; room /= 2 {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		args := map[string]any{"agent": s.Agent, "task": taskText(p, s, done, room)}
		if fork {
			args["fork"] = true
		}
		// Encoding strings and a bool into a buffer cannot fail.
		if err := enc.Encode(args); err != nil || b.Len() <= argsBytesMax {
			return strings.TrimSpace(b.String())
		}
	}
}

// ExamplePlan is a plan of a route, on one line.
func ExamplePlan(route string) string {
	return map[string]string{Chain: "historian > auditor: Look at this directory.", Delegate: "historian: Who wrote this?",
		Consolidate: "historian, auditor > surveyor: Look at this directory."}[route]
}

func (c planClient) usageText() string {
	return "This is not a plan. Write the agents, a colon, and the task, such as\n\n    " + ExamplePlan(c.route) +
		"\n\nor the task, and a line for each step: \"- AGENT: its part\"."
}

// taskText returns the prompt of an agent: the task, the agent's part, and the earlier answers.
func taskText(p Plan, s Step, done [][]stepAnswer, most int) string {
	var b strings.Builder
	b.WriteString(clipText(p.Task, most/2))
	if s.Part != "" {
		b.WriteString("\n\nYour part: " + clipText(s.Part, most/8))
	}
	if len(done) == 0 {
		return b.String()
	}
	before := done[len(done)-1]
	room := max(0, most-b.Len()) / len(before)
	for _, a := range before {
		switch {
		case !a.done || a.failed:
			fmt.Fprintf(&b, "\n\n%s gave no answer: %s", a.Agent, clipText(a.failureText(), failureBytesMax))
		default:
			fmt.Fprintf(&b, "\n\nWhat %s answered:\n%s", a.Agent, clipText(a.text, room))
		}
	}
	return b.String()
}

const failureBytesMax = 400

func (a stepAnswer) failureText() string {
	if !a.done {
		return "it was never asked"
	}
	return a.text
}

// finalReply returns the last message of a plan: the answer of its last step, or all answers
// joined. It names missing answers first, and an answer with missing parts is not whole.
func finalReply(p Plan, done [][]stepAnswer) (string, []model.ToolCall, bool) {
	var gaps []string
	for i, stage := range done {
		for _, a := range stage {
			switch {
			case !a.done || a.failed:
				gaps = append(gaps, fmt.Sprintf("step %d, %s, failed: %s", i+1, a.Agent, clipText(strings.Join(strings.Fields(a.failureText()), " "), failureBytesMax)))
			case a.partial:
				gaps = append(gaps, fmt.Sprintf("step %d, %s, answered only in part", i+1, a.Agent))
			}
		}
	}
	for i := len(done); i < len(p.Stages); i++ {
		gaps = append(gaps, fmt.Sprintf("step %d, %s, was not started", i+1, strings.Join(Plan{Stages: p.Stages[i : i+1]}.AgentNames(), ", ")))
	}
	text := joinAnswers(newestAnswers(done))
	if len(gaps) == 0 {
		return text, nil, true
	}
	head := "[incomplete: " + strings.Join(gaps, "; ") + "]"
	return clipText(strings.TrimSpace(head+"\n\n"+text), AnswerBytesMax), nil, false
}

// newestAnswers returns the answers of the last stage that has any.
func newestAnswers(done [][]stepAnswer) []stepAnswer {
	for _, stage := range slices.Backward(done) {
		if some := slices.DeleteFunc(slices.Clone(stage), func(a stepAnswer) bool { return !a.done || a.failed }); len(some) > 0 {
			return some
		}
	}
	return nil
}

// joinAnswers returns a single answer as it is, or several under their names.
func joinAnswers(answers []stepAnswer) string {
	if len(answers) == 1 {
		return clipText(answers[0].text, AnswerBytesMax)
	}
	var parts []string
	for _, a := range answers {
		parts = append(parts, "## "+a.Agent+"\n\n"+clipText(strings.TrimSpace(a.text), AnswerBytesMax/len(answers)))
	}
	return strings.Join(parts, "\n\n")
}

// clipText keeps the first n bytes of a text and says how many more there were.
func clipText(s string, n int) string {
	return clip.Marked(s, n, fmt.Sprintf("\n[… %d bytes were left out]", len(s)-n))
}
