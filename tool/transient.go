package tool

import (
	"errors"
	"net"
	"syscall"
)

// errTransient marks what Transient has wrapped.
var errTransient = errors.New("tool: a failure that may pass")

// Transient marks the error of a Tool as one that may pass: a server that is
// busy (HTTP 429) or ailing (5xx), a lock that is taken. The loop runs a call of
// a read or idempotent tool again then. Timeouts and refused connections are
// known without it.
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
