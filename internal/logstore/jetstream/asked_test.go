package jetstream

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestRequestWithoutAnAnswerIsRepeated: while the context lasts. Without an end
// of it the caller is told, and any other error is told at once.
func TestRequestWithoutAnAnswerIsRepeated(t *testing.T) {
	ends, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		errs   []error
		asked  int
		answer error
	}{
		"lost twice":         {ends, []error{context.DeadlineExceeded, context.DeadlineExceeded, nil}, 3, nil},
		"lost, then refused": {ends, []error{context.DeadlineExceeded, errors.ErrUnsupported}, 2, errors.ErrUnsupported},
		"for ever":           {t.Context(), []error{context.DeadlineExceeded, nil}, 1, context.DeadlineExceeded},
	} {
		n := 0
		_, err := askUntilAnswered(c.ctx, func(ctx context.Context) (int, error) {
			if until, ok := ctx.Deadline(); !ok || time.Until(until) > askAgain {
				t.Errorf("%s: one request may take until %v", name, until)
			}
			n++
			return n, c.errs[n-1]
		})
		if n != c.asked || !errors.Is(err, c.answer) {
			t.Errorf("%s: asked %d times, %v", name, n, err)
		}
	}
}
