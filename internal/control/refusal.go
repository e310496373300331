package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

// newRefusal returns an error as clients see it: with a code, bounded and masked.
func (c *Config) newRefusal(verb string, err error) *client.Error {
	known := *toClientError(c.explainError(err))
	if known.Code == client.CodeLimit {
		c.Logger.Debug("a request was refused", "verb", verb, "why", known.Text)
	}
	known.Text, known.Hint = string(c.Redact([]byte(known.Text))), string(c.Redact([]byte(known.Hint)))
	known.Text = bounds.TruncateText(known.Text, bounds.ErrorBytesMax)
	return &known
}

// explainError returns the true reason of an error: if the logs cannot be written, a mere timeout
// becomes that refusal.
func (c *Config) explainError(err error) error {
	var known *client.Error
	if i := c.logHealth(); i != nil && !i.Low && !errors.As(err, &known) && (bus.IsUnavailable(err) || errors.Is(err, context.DeadlineExceeded)) {
		return refuseUnwritable(i)
	}
	return err
}

// toClientError finds the code of an error: what the client can do about it.
func toClientError(err error) *client.Error {
	var known *client.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, mailbox.ErrTooLarge), errors.Is(err, mailbox.ErrMalformed):
		return &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: fmt.Sprintf("a request must fit an entry of %d bytes", mailbox.EntryBytesMax)}
	case errors.Is(err, mailbox.ErrFull), bus.IsFull(err):
		return &client.Error{Code: client.CodeLimit, Text: err.Error(), Hint: refuse.RoomHint}
	case bus.IsUnavailable(err), errors.Is(err, context.Canceled), errors.Is(err, mailbox.ErrClosed):
		return &client.Error{Code: client.CodeUnavailable, Text: err.Error(), Hint: "ask again"}
	}
	return &client.Error{Code: client.CodeInternal, Text: err.Error()}
}
