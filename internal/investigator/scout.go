// Package investigator is builtin/scout: the planner of a run when there is no model to
// ask. It is a rule-based planner behind model.Client, not an LLM, and it says
// so. It investigates the directory of a run: the coordinator looks at the
// place, delegates to children with one speciality each, merges their answers
// and writes report.md and report.json.
//
// Scout is stateless. It knows only the tool results in the transcript that it
// is given, so the same request always gets the same reply, and a finding cannot
// be older than the tool result that shows it. Scout never guesses what the tools
// did not show: it reports that as unseen (the limits of a report).
package investigator

import (
	"context"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// Name is the name of this model in replies and reports.
const Name = "builtin/scout"

// notAnLLM is in every final text: a reader must never mistake a rule for a judgement.
const notAnLLM = Name + " is rule-based, not an LLM"

// Client is the planner. The zero value is not usable: see New.
type Client struct{ tokens *tokenCounter }

// New returns a client. The token vocabulary is loaded on first use.
func New() model.Client { return &Client{tokens: newTokenCounter()} }

// Complete decides the next reply of the agent that the system prompt names.
func (c *Client) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, &model.Error{Class: model.Aborted, Unbilled: true, Message: err.Error()}
	}
	input, err := c.tokens.countPrompt(req)
	if err != nil {
		return model.Reply{}, &model.Error{Class: model.Misconfigured, Unbilled: true, Message: err.Error()}
	}
	t := readConversation(req, c.tokens)
	m := planReply(t)
	if len(m.calls) == 0 {
		m.text = c.tokens.cutText(m.text, t.max)
	}
	reply := model.Reply{
		Message:    model.Message{Role: model.Assistant, Text: m.text},
		Stop:       model.StopEnd,
		UsageKnown: true,
		Served:     Name,
	}
	if m.refuses {
		reply.Stop = model.StopRefusal
	}
	for _, call := range m.calls {
		reply.Message.Calls = append(reply.Message.Calls, model.ToolCall{Name: call.name, Args: call.encodeArgs()})
		reply.Stop = model.StopTools
	}
	reply.Usage = model.Usage{Input: input, Output: m.tokenCost(c.tokens)}
	return reply, streamWords(ctx, m.text, emit)
}

// streamWords sends the text a word at a time, as a model would.
func streamWords(ctx context.Context, text string, emit func(model.Delta)) error {
	if emit == nil {
		return nil
	}
	for _, word := range strings.SplitAfter(text, " ") {
		if err := ctx.Err(); err != nil {
			return &model.Error{Class: model.Aborted, Message: err.Error()}
		}
		if word != "" {
			emit(model.Delta{Kind: model.TextDelta, Text: word})
		}
	}
	return nil
}

// lookAdvice says what a run needs for a report.
const lookAdvice = "Give the run a directory, as with `troupe run --dir .`, and the tools list_dir and glob. " + notAnLLM + "."

// noRoom is the answer in a closing turn before which there was no room for a first look: the run may well have a
// directory and tools.
const noRoom = "A limit of the run left no room for a first look, only for this closing turn: nothing was looked at, reported or written. " +
	"Use at least --max-tokens 20000 and --max-turns 3. " + notAnLLM + "."

// NeedsModel is what a prompt reads that asks for anything but an investigation.
const NeedsModel = "What you asked for was not done: that needs a model (set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or run Ollama)."

// refuseOtherWork refuses a prompt that asks for anything but an investigation, where there is no
// directory to show either.
func refuseOtherWork() plannedReply {
	return plannedReply{refuses: true, text: NeedsModel + " I only investigate directories: `troupe run --dir . \"Investigate this repository and write report.md\"`. " + notAnLLM + "."}
}

// plannedReply is one reply: text, calls, or both. A reply that refuses says why the task is not done:
// a report or other work, or any answer of an agent that could see nothing.
type plannedReply struct {
	text    string
	calls   []wantedCall
	refuses bool
}

// tokenCost is the number of output tokens of the move.
func (m plannedReply) tokenCost(c *tokenCounter) int64 {
	n := c.count(m.text)
	for _, w := range m.calls {
		n += w.tokenCost(c)
	}
	return n
}

// planReply selects the rules of the agent's role.
func planReply(t *conversation) plannedReply {
	if len(t.offered) == 0 && len(t.exchanges) == 0 && !t.closing {
		return plannedReply{refuses: true, text: "I was offered no tools, so I could see nothing here and can report nothing about it. " + lookAdvice}
	}
	if j, ok := jobsByName()[t.role]; ok {
		return planChild(t, j)
	}
	if t.role == coordinatorName || t.offered[toolDelegate] {
		return planCoordinator(t)
	}
	if !t.canLook() && !t.sawAnything() {
		if asksForWork(t.asked) {
			return refuseOtherWork()
		}
		if t.isClosedUnseen() {
			return plannedReply{refuses: true, text: noRoom}
		}
		return plannedReply{refuses: true, text: "I was offered no tool that looks at a directory, so I could see nothing here and can report nothing about it. " + lookAdvice}
	}
	return planChild(t, surveyor)
}

// childJob is the speciality of one child.
type childJob struct {
	name string
	// listCalls lists every call that the job needs, as far as the transcript shows it; calls
	// already made are in the list too.
	listCalls func(*conversation) []wantedCall
	// buildAnswer reads the results.
	buildAnswer func(*conversation) agentAnswer
	answerMax   int // the answer's size, 0: answerBytesMax
}

func jobsByName() map[string]childJob {
	all := map[string]childJob{}
	for _, j := range []childJob{historian, cartographer, auditor, dependencies, clusterer, timeline, correlator, surveyor} {
		all[j.name] = j
	}
	return all
}

// planChild makes the missing calls, or else answers.
func planChild(t *conversation, j childJob) plannedReply {
	wants := j.listCalls(t)
	if !t.closing && t.callReplies < wavesMax {
		if calls := t.callsThatFit(t.missingCalls(wants)); len(calls) > 0 {
			return plannedReply{calls: calls}
		}
	}
	if !t.sawAnything() {
		a := agentAnswer{Summary: j.name + " could see nothing", Limits: t.describeGaps(wants)}
		return plannedReply{text: a.renderWithin(t, answerBytesMax)}
	}
	a := j.buildAnswer(t)
	a.Limits = append(a.Limits, t.describeGaps(wants)...)
	size := j.answerMax
	if size == 0 {
		size = answerBytesMax
	}
	return plannedReply{text: a.renderWithin(t, size)}
}
