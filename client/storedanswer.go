package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
)

// storedTimeout is how long the server may take to store an answer.
const storedTimeout = 5 * time.Second

// StoreAnswer leaves an answer on the server while no node is up: it returns once the server has stored it. The node
// that starts next checks it like a direct one; if it refuses it, the event query.refused says why. An approval must
// have the Digest of the call. A server that only one node uses stores none.
func StoreAnswer(ctx context.Context, c *Client, r AnswerRequest) error {
	if c.names.Owner() != "" {
		return &Error{Code: CodeForbidden, Text: "the answer of an owner waits for no node", Hint: "answer when a node is up, or have an operator answer"}
	}
	r.Request = orNew(r.Request)
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("client: answer: %w", err)
	}
	if len(data) > bus.AnswerBytesMax {
		return &Error{Code: CodeBad, Text: fmt.Sprintf("an answer of %d bytes cannot wait for a node, at most %d can", len(data), bus.AnswerBytesMax), Hint: "shorten it, or answer when a node is up"}
	}
	subject, err := c.names.AnswerSubject(r.RunID)
	if err != nil {
		return &Error{Code: CodeBad, Text: err.Error(), Hint: "give the whole id of the run"}
	}
	sub, err := c.nc.SubscribeSync(c.names.StoredAnswers(r.RunID))
	if err != nil {
		return fmt.Errorf("client: answer: %w", err)
	}
	defer dropSubscription(sub)
	id := NewID()
	if err := c.nc.PublishMsg(&nats.Msg{Subject: subject, Data: data, Header: nats.Header{AskHeader: {id}}}); err != nil {
		return fmt.Errorf("client: answer: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, storedTimeout)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case c.isForbidden(subject):
			return &Error{Code: CodeForbidden, Text: "this connection may not ask on " + subject, Hint: "name a client's --creds, --nkey or --user"}
		case err != nil:
			return fmt.Errorf("client: answer: %w, and the server has not stored the answer: %w", ErrUnavailable, err)
		case m.Header.Get("Nats-Stream") == c.names.AnswerStream() && m.Header.Get(AskHeader) == id:
			return nil
		}
	}
}
