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
type Client struct{ tokens *counter }

// New returns a client. The token vocabulary is loaded on first use.
func New() model.Client { return &Client{tokens: newCounter()} }

// Complete decides the next reply of the agent that the system prompt names.
func (c *Client) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, &model.Error{Class: model.Aborted, Unbilled: true, Message: err.Error()}
	}
	input, err := c.tokens.prompt(req)
	if err != nil {
		return model.Reply{}, &model.Error{Class: model.Misconfigured, Unbilled: true, Message: err.Error()}
	}
	t := readTalk(req, c.tokens)
	m := next(t)
	if len(m.calls) == 0 {
		m.text = c.tokens.cut(m.text, t.max)
	}
	reply := model.Reply{
		Message:    model.Message{Role: model.Assistant, Text: m.text},
		Stop:       model.StopEnd,
		UsageKnown: true,
		Served:     Name,
	}
	for _, call := range m.calls {
		reply.Message.Calls = append(reply.Message.Calls, model.ToolCall{Name: call.name, Args: call.encoded()})
		reply.Stop = model.StopTools
	}
	reply.Usage = model.Usage{Input: input, Output: m.cost(c.tokens)}
	return reply, stream(ctx, m.text, emit)
}

// stream sends the text a word at a time, as a model would.
func stream(ctx context.Context, text string, emit func(model.Delta)) error {
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

// move is one reply: text, calls, or both.
type move struct {
	text  string
	calls []want
}

// cost is the number of output tokens of the move.
func (m move) cost(c *counter) int64 {
	n := c.count(m.text)
	for _, w := range m.calls {
		n += w.cost(c)
	}
	return n
}

// next selects the rules of the agent's role.
func next(t *talk) move {
	if len(t.offered) == 0 && len(t.exchanges) == 0 && !t.closing {
		return move{text: "I was offered no tools, so I could see nothing here and can report nothing about it. " + notAnLLM + "."}
	}
	if j, ok := jobs()[t.role]; ok {
		return child(t, j)
	}
	if t.role == coordinatorName || t.offered[toolDelegate] {
		return coordinate(t)
	}
	return child(t, surveyor)
}

// job is the speciality of one child.
type job struct {
	name string
	// wants lists every call that the job needs, as far as the transcript shows it; calls
	// already made are in the list too.
	wants func(*talk) []want
	// answer reads the results.
	answer func(*talk) answer
	bytes  int // the answer's size, 0: answerBytesMax
}

func jobs() map[string]job {
	all := map[string]job{}
	for _, j := range []job{historian, cartographer, auditor, dependencies, clusterer, timeline, correlator, surveyor} {
		all[j.name] = j
	}
	return all
}

// child makes the missing calls, or else answers.
func child(t *talk, j job) move {
	wants := j.wants(t)
	if !t.closing && t.waves < wavesMax {
		if calls := t.fit(t.missing(wants)); len(calls) > 0 {
			return move{calls: calls}
		}
	}
	if !t.sawAnything() {
		a := answer{Summary: j.name + " could see nothing", Limits: t.gaps(wants)}
		return move{text: a.render(t, answerBytesMax)}
	}
	a := j.answer(t)
	a.Limits = append(a.Limits, t.gaps(wants)...)
	size := j.bytes
	if size == 0 {
		size = answerBytesMax
	}
	return move{text: a.render(t, size)}
}
