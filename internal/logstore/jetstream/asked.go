package jetstream

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// askAgain is how long a request to the leader of a stream waits for its answer. A request
// that is sent while there is no leader never gets an answer: the servers that receive it
// leave it to a leader. So if ctx has a deadline, the request is retried until it expires.
const askAgain = 5 * time.Second

// askUntilAnswered repeats a request until it is answered, if ctx has a deadline.
func askUntilAnswered[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for {
		try, cancel := context.WithTimeout(ctx, askAgain)
		v, err := ask(try)
		cancel()
		_, ends := ctx.Deadline()
		if !ends || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) {
			return v, err
		}
	}
}

// GetMsg is the method of the client library with retries.
func (s *poolStream) GetMsg(ctx context.Context, seq uint64, opts ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	return askUntilAnswered(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) { return s.Stream.GetMsg(ctx, seq, opts...) })
}

// GetLastMsgForSubject is the method of the client library with retries.
func (s *poolStream) GetLastMsgForSubject(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	return askUntilAnswered(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.Stream.GetLastMsgForSubject(ctx, subject)
	})
}

// Info is the method of the client library with retries.
func (s *poolStream) Info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	return askUntilAnswered(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) { return s.Stream.Info(ctx, opts...) })
}
