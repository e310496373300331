package agentprotocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// Limits of a call of an agent of another program.
const (
	// ackTimeout is how long an agent may take to acknowledge a prompt, which it does before it begins to work.
	ackTimeout = 15 * time.Second
	// silenceMax is how long a stream may be silent, as the protocol recommends.
	silenceMax = 60 * time.Second
	// discoveryWait is how long an agent may take to answer a discovery.
	discoveryWait = 2 * time.Second
	// livenessCheck is how often a silent call looks at the heartbeats of its agent.
	livenessCheck = time.Second
	// answerBytesMax is the most text of one answer.
	answerBytesMax = 1 << 20
	// pendingChunksMax and pendingBytesMax bound the messages of a stream that wait to be read.
	pendingChunksMax, pendingBytesMax = 4096, 16 << 20
	// openChunksMax and openBytesMax bound them while the agent waits for an answer: room for keep-alives.
	openChunksMax, openBytesMax = 1024, 256 << 10
	// questionsOpenMax bounds the calls of a node that wait for the answer to a question.
	questionsOpenMax = 256
)

// Errors of a call. Each text describes the outcome to a model.
var (
	errNobody     = errors.New("no agent answers at this name on the NATS server; the task was not taken")
	errNotSent    = errors.New("the task was not sent")
	errNoAck      = errors.New("no agent acknowledged the task; whether one received it is unknown")
	errVanished   = errors.New("the agent stopped answering; what it did is unknown")
	errNoWait     = errors.New("the wait for the agent ended; it may still be at work, and what it did is unknown")
	errOverrun    = errors.New("the agent sent faster than its answer could be read, and a part of it is lost; what it did is unknown")
	errTooLong    = fmt.Errorf("the answer is longer than %d bytes and is cut here; what the agent did after it is unknown", answerBytesMax)
	errTwoAgents  = errors.New("two agents took the task at this name, and their answers are mixed; what they did is unknown")
	errMalformed  = errors.New("the agent sent a message that is not a chunk of the protocol; what it did is unknown")
	errConnection = errors.New("the connection to the NATS server failed; what the agent did is unknown")
	errNotAsked   = errors.New("this node no longer holds this question: it was restarted, or 256 newer ones were asked; what the agent did is unknown")
)

// Question says that an agent has asked a question, and waits for the answer to it. A call
// with its ID brings the answer.
type Question struct{ ID, Text string }

func (q *Question) Error() string { return "the agent asks: " + quoteWords(q.Text) }

// CallRequest is a task for an agent of another program, which is named by HARNESS/OWNER/NAME.
type CallRequest struct {
	Name, Task string
	// Answers is the ID of the question that the task answers; "": it is a new task.
	Answers string
	// Trace is the W3C traceparent of the call, which the agent gets as a header; it may be empty.
	Trace string
	// Progress, if it is not nil, gets words about how far the agent is.
	Progress func(words string)
}

// Caller calls agents of other programs over one connection. It is safe for concurrent use.
type Caller struct {
	conn  *nats.Conn
	names names.Names
	beats *liveness

	ack, silence, discovery, check time.Duration // tests have shorter ones

	mu   sync.Mutex
	open []*foreignStream // that wait for an answer, the oldest first
}

// NewCaller returns a Caller. It follows the heartbeats of all agents from here on. They end with the connection.
func NewCaller(conn *nats.Conn, n names.Names) (*Caller, error) {
	c := &Caller{conn: conn, names: n, beats: newLiveness(), ack: ackTimeout, silence: silenceMax, discovery: discoveryWait, check: livenessCheck}
	if _, err := conn.Subscribe(names.HeartbeatSubjects, c.beats.add); err != nil {
		return nil, fmt.Errorf("agentprotocol: heartbeats: %w", err)
	}
	return c, nil
}

// foreignStream is a call whose stream has not ended.
type foreignStream struct {
	id     string // of the open question
	agent  foundAgent
	sub    *nats.Subscription
	answer foreignAnswer
}

// Call gives a task to an agent of another program, and returns its answer. With an error the text is what had
// arrived until then; a *Question is an error after which the agent waits. The end of ctx ends the wait at once: the
// protocol has no signal that would stop the agent.
func (c *Caller) Call(ctx context.Context, r CallRequest) (text string, err error) {
	s, err := c.begin(ctx, r)
	if err == nil {
		s.answer.progress = r.Progress
		err = c.collect(ctx, s)
	}
	var asked *Question
	switch {
	case s == nil:
		return "", fmt.Errorf("%s: %w", r.Name, err)
	case errors.As(err, &asked):
		c.keepOpen(s, asked)
		return "", err
	}
	_ = s.sub.Unsubscribe() // it fails only if the connection is closed
	if err != nil {
		return s.answer.partial(), fmt.Errorf("%s: %w", r.Name, err)
	}
	return s.answer.text.String(), nil
}

// begin sends a task, or the answer to a question.
func (c *Caller) begin(ctx context.Context, r CallRequest) (*foreignStream, error) {
	if r.Answers != "" {
		return c.resume(r)
	}
	agent, err := c.findAgent(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	prompt, err := json.Marshal(map[string]string{"prompt": r.Task})
	if err != nil {
		return nil, fmt.Errorf("agentprotocol: prompt: %w", err)
	}
	if len(prompt) > agent.payloadMax {
		return nil, fmt.Errorf("%w: it has %d bytes, and the agent takes %d", errNotSent, len(prompt), agent.payloadMax)
	}
	inbox := c.conn.NewInbox()
	sub, err := c.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("agentprotocol: inbox: %w", err)
	}
	err = sub.SetPendingLimits(pendingChunksMax, pendingBytesMax)
	if err == nil {
		err = c.conn.PublishMsg(promptMessage(agent.subject, inbox, r.Trace, prompt))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errNotSent, err), sub.Unsubscribe())
	}
	return &foreignStream{agent: agent, sub: sub}, nil
}

// promptMessage is the message of a prompt. It has a header only if it is part of a trace.
func promptMessage(subject, reply, trace string, prompt []byte) *nats.Msg {
	m := &nats.Msg{Subject: subject, Reply: reply, Data: prompt}
	if trace != "" {
		m.Header = nats.Header{client.TraceHeader: {trace}}
	}
	return m
}

// keepOpen keeps a stream whose agent waits for an answer. The oldest one goes if there are too many.
func (c *Caller) keepOpen(s *foreignStream, asked *Question) {
	s.id = asked.ID
	_ = s.sub.SetPendingLimits(openChunksMax, openBytesMax) // it fails only if the connection is closed
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == questionsOpenMax {
		_ = c.open[0].sub.Unsubscribe() // it fails only if the connection is closed
		c.open = slices.Delete(c.open, 0, 1)
	}
	c.open = append(c.open, s)
}

// resume answers an open question.
func (c *Caller) resume(r CallRequest) (*foreignStream, error) {
	c.mu.Lock()
	i := slices.IndexFunc(c.open, func(s *foreignStream) bool { return s.id == r.Answers && s.agent.name == r.Name })
	if i < 0 {
		c.mu.Unlock()
		return nil, errNotAsked
	}
	s := c.open[i]
	c.open = slices.Delete(c.open, i, i+1)
	c.mu.Unlock()
	prompt, err := json.Marshal(map[string]string{"prompt": r.Task})
	if err == nil {
		err = s.sub.SetPendingLimits(pendingChunksMax, pendingBytesMax)
	}
	if err == nil {
		err = c.conn.Publish(s.answer.replySubject, prompt)
	}
	if err != nil {
		return s, fmt.Errorf("%w: the answer was not sent: %w", errConnection, err)
	}
	return s, nil
}

// collect reads the messages of a stream up to its end, or a question.
func (c *Caller) collect(ctx context.Context, s *foreignStream) error {
	for !s.answer.ended {
		m, err := c.next(ctx, s)
		if err == nil {
			err = s.answer.add(m)
		}
		var asked *Question
		if errors.As(err, &asked) && !c.mayAnswerAt(s.answer.replySubject) {
			return fmt.Errorf("%w: its answer would have to go to a subject that is none of the protocol, and was not sent: %s", errMalformed, quoteWords(asked.Text))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mayPromptAt reports whether a task may go to a subject that discovery names: that of prompts, or a subject of another
// program, and no inbox. Other subjects of agents, such as those of controllers, would take the task for a request.
func (c *Caller) mayPromptAt(subject string) bool {
	return c.isForeignSubject(subject) && !strings.HasPrefix(subject, nats.InboxPrefix) && isNoOtherVerb(subject, names.AgentPrompt)
}

// mayAnswerAt reports whether an answer may go to a subject that a question names. It may be an inbox, but no
// endpoint of an agent: that agent would take the answer for a request of ours.
func (c *Caller) mayAnswerAt(subject string) bool {
	return c.isForeignSubject(subject) && isNoOtherVerb(subject, queryVerb)
}

// isForeignSubject reports whether a subject that another program names belongs neither to this system nor to the
// server, whose own subjects begin with $ and _.
func (c *Caller) isForeignSubject(subject string) bool {
	first, _, _ := strings.Cut(subject, ".")
	ours := first == c.names.Prefix() || strings.HasPrefix(subject, "$")
	servers := strings.HasPrefix(subject, "_") && !strings.HasPrefix(subject, nats.InboxPrefix)
	return subject != "" && len(subject) <= subjectBytesMax && !ours && !servers &&
		!strings.ContainsAny(subject, " \t\r\n*>") && !strings.Contains("."+subject+".", "..")
}

// isNoOtherVerb reports whether a subject has the verb, or is outside those of agents.
func isNoOtherVerb(subject, verb string) bool {
	rest, ofAgents := strings.CutPrefix(subject, agentSubjects)
	return !ofAgents || strings.HasPrefix(rest, verb+".")
}

const (
	subjectBytesMax = 256
	// agentSubjects is what all subjects of the protocol begin with.
	agentSubjects = "agents."
)

// next returns the next message of a stream. The first one acknowledges the prompt.
func (c *Caller) next(ctx context.Context, s *foreignStream) (*nats.Msg, error) {
	first := s.answer.messages == 0
	wait, late := c.silence, fmt.Errorf("%w: nothing came for %s", errVanished, c.silence)
	if first {
		wait, late = c.ack, fmt.Errorf("%w: nothing came for %s", errNoAck, c.ack)
	}
	for until := time.Now().Add(wait); ; {
		waiting, cancel := context.WithTimeout(ctx, min(c.check, time.Until(until)))
		m, err := s.sub.NextMsgWithContext(waiting)
		over := waiting.Err() != nil
		cancel()
		switch {
		case err == nil:
			return m, nil
		case ctx.Err() != nil:
			return nil, errNoWait
		case over && time.Now().Before(until):
			if silent := c.beats.silence(s.agent); silent > 0 && !first {
				return nil, fmt.Errorf("%w: its heartbeats ended %s ago", errVanished, silent.Round(time.Second))
			}
		case over:
			return nil, late
		default:
			return nil, streamError(err, first)
		}
	}
}

// streamError explains why no message could be read.
func streamError(err error, first bool) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders) && first:
		return errNobody
	case errors.Is(err, nats.ErrNoResponders): // no server says so in a stream that has begun
		return errMalformed
	case errors.Is(err, nats.ErrSlowConsumer):
		return errOverrun
	}
	return fmt.Errorf("%w: %w", errConnection, err)
}
