package model

import (
	"fmt"
	"time"
)

// ErrorClass sorts what can go wrong with an attempt.
type ErrorClass string

// Classes. RateLimit, Overload and Network may be tried again.
const (
	RateLimit     ErrorClass = "rate_limit"
	Overload      ErrorClass = "overload"
	Network       ErrorClass = "network"
	TooLong       ErrorClass = "prompt_too_long"
	Auth          ErrorClass = "authentication"
	Quota         ErrorClass = "quota" // the account has no money or no quota left
	BadRequest    ErrorClass = "bad_request"
	Refused       ErrorClass = "refused"
	Aborted       ErrorClass = "aborted"
	UnknownClass  ErrorClass = "unknown"
	Undecodable   ErrorClass = "undecodable"
	Misconfigured ErrorClass = "misconfigured"
)

// Retryable reports whether another attempt may succeed.
func (c ErrorClass) Retryable() bool { return c == RateLimit || c == Overload || c == Network }

// Error is a failed attempt.
type Error struct {
	Class ErrorClass
	// Unbilled is true only for a refusal that the provider documents as free
	// (a 4xx or 529 before any output); otherwise the attempt counts as spent.
	Unbilled   bool
	Status     int           // HTTP status, 0 when there was none
	RetryAfter time.Duration // 0 when the provider did not say
	Message    string        // for people; holds no secret, no URL query, no header
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model: %s (HTTP %d): %s", e.Class, e.Status, e.Message)
	}
	return fmt.Sprintf("model: %s: %s", e.Class, e.Message)
}
