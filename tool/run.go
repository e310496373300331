package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Causes of the context of a call that ran out of time: the tool's own, or that
// of the one who asked.
var (
	errTimeout  = errors.New("tool: timed out")
	errDeadline = errors.New("tool: deadline passed")
)

// runCall calls the tool within its timeout. It abandons a tool that does not return:
// nothing can stop a goroutine, so the result says that the tool may still run.
func (e *toolEntry) runCall(ctx context.Context, c Call) Result {
	if ctx.Err() != nil {
		return Result{Text: e.spec.Name + " was canceled before it started", Error: true}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.limits.Timeout, errTimeout)
	defer cancel()
	if !c.Deadline.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, c.Deadline, errDeadline)
		defer stop()
	}
	c.Deadline, _ = ctx.Deadline()
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	done := make(chan Result, 1)
	go e.callGuarded(ctx, c, done)
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
	}
	grace := time.NewTimer(AbandonGrace)
	defer grace.Stop()
	select {
	case r := <-done:
		return r
	case <-grace.C:
		return Result{Error: true, Transient: e.timedOut(ctx), Text: fmt.Sprintf("%s %s and did not stop within %s; it was abandoned and may still be running, so what it did is unknown",
			e.spec.Name, e.endReason(ctx), AbandonGrace)}
	}
}

// endReason returns why the context of a call is over.
func (e *toolEntry) endReason(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return "timed out after " + e.limits.Timeout.String()
	case errors.Is(cause, errDeadline), errors.Is(cause, context.DeadlineExceeded):
		return "ran into the deadline of the call"
	}
	return "was canceled"
}

// timedOut reports whether the context of a call is over because the call took too long, not
// because the run canceled it.
func (e *toolEntry) timedOut(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, errTimeout) || errors.Is(cause, errDeadline) || errors.Is(cause, context.DeadlineExceeded)
}

// callGuarded always sends exactly one result, even when the tool panics or ends
// its goroutine.
func (e *toolEntry) callGuarded(ctx context.Context, c Call, done chan<- Result) {
	r := Result{Text: e.spec.Name + " ended without a result", Error: true}
	defer func() {
		if p := recover(); p != nil {
			r = Result{Text: fmt.Sprintf("%s crashed: %v", e.spec.Name, p), Error: true}
		}
		done <- r
	}()
	got, err := e.tool.Call(ctx, c)
	if err == nil {
		r = got
		return
	}
	text := readableError(e.spec.Name, err)
	if ctx.Err() != nil {
		text = e.spec.Name + " " + e.endReason(ctx)
		if !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx)) {
			text += ": " + err.Error()
		}
	}
	if got.Text != "" {
		text = strings.TrimRight(got.Text, "\n") + "\n" + text
	}
	r = Result{Text: text, Error: true, Transient: got.Transient || mayPass(err) || e.timedOut(ctx), TextBytes: got.TextBytes}
}

// readableError is an error as a model reads it: without the name of a Go package.
func readableError(name string, err error) string {
	text := err.Error()
	if errors.Is(err, ErrArgs) {
		return fmt.Sprintf("the arguments do not fit the schema of %s%s", name, strings.TrimPrefix(text, ErrArgs.Error()))
	}
	return text
}

// finishResult turns the output of a tool into text that a model may read: valid UTF-8, of
// the promised schema, without secrets and within the limit.
func (s *Set) finishResult(e *toolEntry, r Result) Result {
	r.Whole = ""
	if !utf8.ValidString(r.Text) {
		text, bad := validUTF8(r.Text)
		r = Result{Error: true, TextBytes: r.TextBytes, Text: fmt.Sprintf("[malformed result of %s: %d bytes are not UTF-8 and are shown as \uFFFD]\n%s", e.spec.Name, bad, text)}
	}
	if e.result != nil && !r.Error {
		var v any
		err := json.Unmarshal([]byte(r.Text), &v)
		if err == nil {
			err = e.result.Validate(v)
		}
		if err != nil {
			r = Result{Error: true, TextBytes: r.TextBytes, Text: fmt.Sprintf("[malformed result of %s: %v]\n%s", e.spec.Name, err, r.Text)}
		}
	}
	if e.limits.Masked {
		r.Text = s.mask.MaskValues(r.Text)
	} else {
		r.Text = s.mask.MaskText(r.Text)
	}
	if len(r.Text) > e.limits.Output {
		whole := r.Text
		r.Text = clipSized(whole, e.limits.Output, max(r.TextBytes, int64(len(whole))))
		r.Whole = Clip(whole, WholeBytesMax)
	}
	return r
}

// validUTF8 replaces every byte that is not UTF-8 and counts them.
func validUTF8(s string) (text string, bad int) {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			bad++
		}
		b.WriteRune(r)
		i += size
	}
	return b.String(), bad
}
