package script

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// bytesPerToken is how this model bills usage that a script does not state. Like a provider, it counts
// by a rule of its own, not by estimate.Messages.
const bytesPerToken = 4

// maxCounted bounds how many failing requests a client counts (Failure.Times).
const maxCounted = 4096

// namedAgentsBytes bounds how much of the names of a script's agents an error lists.
const namedAgentsBytes = 200

// systemPrefix starts the line of a system prompt that names the agent of a request without a
// Caller.
const systemPrefix = "agent:"

// Client returns a client that plays the script. A name fixes the agent; with
// "" each request names its agent, so one client can serve all agents of a node.
func (s *Script) Client(agent string) model.Client {
	return &scriptClient{script: s, agent: agent, failed: map[uint64]int{}, asked: map[string]int{}}
}

// Named returns the script with a name for errors; the script itself may be shared.
func (s Script) Named(name string) *Script {
	s.Name = name
	return &s
}

type scriptClient struct {
	script *Script
	agent  string

	mu     sync.Mutex
	failed map[uint64]int // by fingerprint of the request; only for Failure.Times
	asked  map[string]int // by agent; only for Script.InOrder
}

// Complete plays the reply that the request stands at.
func (c *scriptClient) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	if emit == nil {
		emit = func(model.Delta) {}
	}
	agent, list := c.repliesFor(req)
	if len(list) == 0 {
		return model.Reply{}, c.script.missingAgent(agent)
	}
	n := c.countReplies(agent, req.Messages)
	r := c.script.replyAt(list, n)
	p := newPlay(r, req, agent, n)
	if c.script.Verbatim {
		p = newVerbatimPlay(r)
	}
	if req.NoTools {
		p.obeyNoTools(c.script.Closing)
	}
	fail := c.scriptedError(r, agent, n, req)
	switch {
	case fail != nil && !r.Cut:
		p.text, p.reasoning, p.calls = "", "", nil
	case r.Cut && (fail != nil || r.Error == nil):
		p.cutStream()
		if fail == nil && r.Stop != model.StopMaxOutput {
			fail = &model.Error{Class: model.Network, Message: "the stream was cut"}
		}
	}
	if r.Usage == nil {
		p.boundOutput(req.MaxOutput)
	}
	reply, err := p.streamReply(ctx, emit)
	if err != nil {
		return reply, err
	}
	if fail != nil {
		return reply, fail
	}
	p.fillUsage(&reply, req)
	return reply, nil
}

// repliesFor returns the replies of the agent that asks, and under which name it is counted.
func (c *scriptClient) repliesFor(req model.Request) (agent string, list []Reply) {
	if list, ok := c.script.IDs[req.Caller.ID]; ok {
		return req.Caller.ID, list
	}
	agent = c.agentName(req)
	list, ok := c.script.Agents[agent]
	if !ok {
		list = c.script.Default
	}
	return agent, list
}

// missingAgent is the error for an agent without replies. An empty text would look like an answer.
func (s *Script) missingAgent(agent string) *model.Error {
	known := slices.Sorted(maps.Keys(s.Agents))
	text := fmt.Sprintf("script %s has no replies for agent %q, and no default", s.Name, agent)
	if s.Name == "" {
		text = fmt.Sprintf("the script has no replies for agent %q, and no default", agent)
	}
	if len(known) > 0 {
		text += "; it has replies for " + clip.Text(strings.Join(known, ", "), namedAgentsBytes)
	}
	return &model.Error{Class: model.Misconfigured, Unbilled: true, Message: text}
}

// replyAt is reply n of a list.
func (s *Script) replyAt(list []Reply, n int) Reply {
	switch {
	case n < len(list):
		return list[n]
	case s.Repeat && len(list) > 0:
		return list[len(list)-1]
	}
	return Reply{Text: EndText}
}

func (c *scriptClient) agentName(req model.Request) string {
	if name := cmp.Or(c.agent, req.Caller.Name); name != "" {
		return name
	}
	line, _, _ := strings.Cut(req.System, "\n")
	if rest, ok := strings.CutPrefix(line, systemPrefix); ok {
		return strings.TrimSpace(rest)
	}
	return ""
}

// countReplies counts the assistant messages that stand in a request, or the requests
// themselves.
func (c *scriptClient) countReplies(agent string, messages []model.Message) int {
	n := 0
	if c.script.InOrder {
		c.mu.Lock()
		defer c.mu.Unlock()
		n = c.asked[agent]
		c.asked[agent]++
		return n
	}
	for _, m := range messages {
		if m.Role == model.Assistant && !m.Tombstone {
			n++
		}
	}
	return n
}

// scriptedError is the error this attempt ends with, or nil.
func (c *scriptClient) scriptedError(r Reply, agent string, n int, req model.Request) *model.Error {
	if r.Error == nil {
		return nil
	}
	if r.Error.Times > 0 {
		key := attemptHash(agent, n, req)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.failed[key] >= r.Error.Times {
			return nil
		}
		if len(c.failed) >= maxCounted {
			clear(c.failed)
		}
		c.failed[key]++
	}
	e := r.Error
	message := e.Message
	if message == "" {
		message = "scripted"
	}
	return &model.Error{Class: e.Class, Status: e.Status, RetryAfter: time.Duration(e.RetryAfter),
		Unbilled: e.Unbilled, Message: message}
}

// attemptHash is equal for two attempts of one request.
func attemptHash(agent string, n int, req model.Request) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%d\x00%s\x00%s", agent, n, req.System, req.Dynamic)
	for _, m := range req.Messages {
		fmt.Fprintf(h, "\x00%s\x00%s\x00%v\x00%v", m.Role, m.Text, m.Calls, m.Results)
	}
	return h.Sum64()
}

// replyPlay is one reply on its way out.
type replyPlay struct {
	reply     Reply
	reasoning string
	text      string
	calls     []model.ToolCall
	stop      model.Stop
}

func newPlay(r Reply, req model.Request, agent string, n int) *replyPlay {
	return newVars(req, agent, n).expandReply(r)
}

// newVerbatimPlay replaces nothing in the reply.
func newVerbatimPlay(r Reply) *replyPlay { return replyVars{}.expandReply(r) }

func (v replyVars) expandReply(r Reply) *replyPlay {
	p := &replyPlay{reply: r, reasoning: v.expandText(r.Reasoning), text: v.expandText(r.Text), stop: r.Stop}
	for _, c := range r.Calls {
		p.calls = append(p.calls, model.ToolCall{Name: c.Name, Args: v.renderArgs(c.Args), Cut: c.Cut})
	}
	if p.stop == "" {
		p.stop = model.StopEnd
		if len(p.calls) > 0 {
			p.stop = model.StopTools
		}
	}
	return p
}

// obeyNoTools obeys a request that forbids tools.
func (p *replyPlay) obeyNoTools(text string) {
	if p.calls = nil; p.stop == model.StopTools {
		p.stop = model.StopEnd
	}
	if p.text != "" {
		return
	}
	if p.text = text; text == "" {
		p.text = ClosingText
	}
}

// cutStream ends the stream in the middle of the last thing it carried.
func (p *replyPlay) cutStream() {
	if len(p.calls) == 0 {
		p.text = clip.Prefix(p.text, len(p.text)/2)
		return
	}
	p.cutCall(len(p.calls)-1, len(p.calls[len(p.calls)-1].Args)/2)
}

// cutCall keeps size bytes of call i and drops what came after it.
func (p *replyPlay) cutCall(i, size int) {
	p.calls = p.calls[:i+1]
	p.calls[i].Args = clip.Prefix(p.calls[i].Args, size)
	p.calls[i].Cut = true // no proper prefix of a JSON object decodes
}

// boundOutput cuts the reply at the output limit, as a provider would.
func (p *replyPlay) boundOutput(tokens int64) {
	room := tokens * bytesPerToken
	if int64(p.outputSize()) <= room {
		return
	}
	p.stop = model.StopMaxOutput
	p.reasoning = clip.Prefix(p.reasoning, int(min(room, int64(len(p.reasoning)))))
	room -= int64(len(p.reasoning))
	p.text = clip.Prefix(p.text, int(min(room, int64(len(p.text)))))
	room -= int64(len(p.text))
	for i, c := range p.calls {
		left := room - int64(len(c.Name))
		if left < int64(len(c.Args)) {
			if left <= 0 {
				p.calls = p.calls[:i]
			} else {
				p.cutCall(i, int(left))
			}
			return
		}
		room = left - int64(len(c.Args))
	}
}

// outputSize is the output in bytes.
func (p *replyPlay) outputSize() int {
	n := len(p.reasoning) + len(p.text)
	for _, c := range p.calls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}

// streamReply sends the reply piece by piece; when ctx ends it returns what had arrived.
func (p *replyPlay) streamReply(ctx context.Context, emit func(model.Delta)) (model.Reply, error) {
	reply := model.Reply{Message: model.Message{Role: model.Assistant}, Stop: model.StopUnknown, Served: "script"}
	if err := waitFor(ctx, time.Duration(p.reply.Delay)); err != nil {
		return reply, err
	}
	pace := time.Duration(p.reply.Pace)
	for _, w := range strings.SplitAfter(p.reasoning, " ") {
		if w != "" {
			if err := waitFor(ctx, pace); err != nil {
				return reply, err
			}
			emit(model.Delta{Kind: model.ReasoningDelta, Text: w})
		}
	}
	for _, w := range strings.SplitAfter(p.text, " ") {
		if w != "" {
			if err := waitFor(ctx, pace); err != nil {
				return reply, err
			}
			reply.Message.Text += w
			emit(model.Delta{Kind: model.TextDelta, Text: w})
		}
	}
	for _, c := range p.calls {
		if err := waitFor(ctx, pace); err != nil {
			return reply, err
		}
		reply.Message.Calls = append(reply.Message.Calls, c)
	}
	return reply, nil
}

// fillUsage fills in the stop reason and the usage of the reply.
func (p *replyPlay) fillUsage(reply *model.Reply, req model.Request) {
	reply.Stop = p.stop
	if p.reply.NoUsage {
		return
	}
	reply.UsageKnown = true
	if u := p.reply.Usage; u != nil {
		reply.Usage = u.toModel()
		return
	}
	reply.Usage = model.Usage{Input: byteTokens(promptBytes(req)), Output: byteTokens(p.outputSize())}
}

func byteTokens(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }

func promptBytes(req model.Request) int {
	n := len(req.System) + len(req.Dynamic)
	for _, m := range req.Messages {
		if m.Tombstone {
			continue
		}
		n += len(m.Text)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Args)
		}
		for _, r := range m.Results {
			n += len(r.Text)
		}
	}
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}

// waitFor lets d pass, or fails as soon as ctx ends.
func waitFor(ctx context.Context, d time.Duration) error {
	if d > 0 && ctx.Err() == nil {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
	if ctx.Err() != nil {
		return &model.Error{Class: model.Aborted, Message: "the call was stopped"}
	}
	return nil
}
