package tool

import (
	"errors"
	"net"
	"syscall"
)

// errTransient marks what Transient has wrapped.
var errTransient = errors.New("tool: temporary failure")

// Transient marks the error of a Tool as temporary: a busy (HTTP 429) or failing (5xx)
// server, a lock that is held. The loop then retries the call if the tool is read or
// idempotent. Timeouts and refused connections are temporary without it.
func Transient(err error) error {
	if err == nil {
		return nil
	}
	return &transientError{err}
}

type transientError struct{ error }

func (t *transientError) Unwrap() []error { return []error{t.error, errTransient} }

// mayPass reports whether an error may pass.
func mayPass(err error) bool {
	var slow net.Error
	return errors.Is(err, errTransient) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) ||
		errors.As(err, &slow) && slow.Timeout()
}
