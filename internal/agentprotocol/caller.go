package agentprotocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// Limits of a call of an agent of another program.
const (
	// ackTimeout is how long an agent may take to acknowledge a prompt, which it does before it begins to work.
	ackTimeout = 15 * time.Second
	// silenceMax is how long a stream may be silent, as the protocol recommends.
	silenceMax = 60 * time.Second
	// answerBytesMax is the most text of one answer.
	answerBytesMax = 1 << 20
	// pendingChunksMax and pendingBytesMax bound the messages of a stream that wait to be read.
	pendingChunksMax, pendingBytesMax = 4096, 16 << 20
)

// Errors of a call. Each text tells a model what is known of the outcome.
var (
	errNobody     = errors.New("no agent answers at this name on the NATS server; the task was not taken")
	errNoAck      = errors.New("no agent acknowledged the task; whether one received it is unknown")
	errVanished   = errors.New("the agent stopped answering; what it did is unknown")
	errNoWait     = errors.New("the wait for the agent ended; it may still be at work, and what it did is unknown")
	errOverrun    = errors.New("the agent sent faster than its answer could be read, and a part of it is lost; what it did is unknown")
	errTooLong    = fmt.Errorf("the answer is longer than %d bytes and is cut here; what the agent did after it is unknown", answerBytesMax)
	errTwoAgents  = errors.New("two agents took the task at this name, and their answers are mixed; what they did is unknown")
	errMalformed  = errors.New("the agent sent a message that is no chunk of the protocol; what it did is unknown")
	errConnection = errors.New("the connection to the NATS server failed; what the agent did is unknown")
)

// foreignCaller calls agents of other programs. Tests have shorter timeouts.
type foreignCaller struct {
	conn         *nats.Conn
	ack, silence time.Duration
	progress     func(words string)
}

// CallAgent gives a task to an agent of another program, which is named by three tokens of its subject, HARNESS/OWNER/NAME,
// and returns its answer. With an error the text is what had arrived until then. The end of ctx ends the wait at once; the
// protocol has no signal that would stop the agent. progress, if it is not nil, gets words about how far the agent is.
func CallAgent(ctx context.Context, conn *nats.Conn, name, task string, progress func(words string)) (string, error) {
	return foreignCaller{conn, ackTimeout, silenceMax, progress}.call(ctx, name, task)
}

func (f foreignCaller) call(ctx context.Context, name, task string) (string, error) {
	subject, err := names.ForeignPrompt(name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNobody, err)
	}
	prompt, err := json.Marshal(map[string]string{"prompt": task})
	if err != nil {
		return "", fmt.Errorf("agentprotocol: prompt: %w", err)
	}
	inbox := f.conn.NewInbox()
	sub, err := f.conn.SubscribeSync(inbox)
	if err != nil {
		return "", fmt.Errorf("agentprotocol: inbox: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only if the connection is closed
	if err := sub.SetPendingLimits(pendingChunksMax, pendingBytesMax); err != nil {
		return "", fmt.Errorf("agentprotocol: inbox: %w", err)
	}
	if err := f.conn.PublishRequest(subject, inbox, prompt); err != nil {
		return "", fmt.Errorf("agentprotocol: the task was not sent: %w", err)
	}
	a := foreignAnswer{progress: f.progress}
	if err := f.collect(ctx, sub, &a); err != nil {
		return a.partial(), fmt.Errorf("%s: %w", name, err)
	}
	return a.text.String(), nil
}

// collect reads the messages of a stream up to its end.
func (f foreignCaller) collect(ctx context.Context, sub *nats.Subscription, a *foreignAnswer) error {
	for !a.ended {
		m, err := f.next(ctx, sub, a.messages == 0)
		if err == nil {
			err = a.add(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// next returns the next message of a stream. The first one acknowledges the prompt.
func (f foreignCaller) next(ctx context.Context, sub *nats.Subscription, first bool) (*nats.Msg, error) {
	wait, late := f.silence, fmt.Errorf("%w: nothing came for %s", errVanished, f.silence)
	if first {
		wait, late = f.ack, fmt.Errorf("%w: nothing came for %s", errNoAck, f.ack)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	m, err := sub.NextMsgWithContext(waiting)
	switch {
	case err == nil:
		return m, nil
	case ctx.Err() != nil:
		return nil, errNoWait
	case waiting.Err() != nil:
		return nil, late
	case errors.Is(err, nats.ErrNoResponders) && first:
		return nil, errNobody
	case errors.Is(err, nats.ErrNoResponders): // no server says so in a stream that has begun
		return nil, errMalformed
	case errors.Is(err, nats.ErrSlowConsumer):
		return nil, errOverrun
	}
	return nil, fmt.Errorf("%w: %w", errConnection, err)
}
