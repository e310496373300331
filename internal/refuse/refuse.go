// Package refuse makes the errors with which a node refuses a request: the reason, and how
// the client can resolve it.
package refuse

import (
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/client"
)

// Bad returns the error for a request that no node could execute as it is.
func Bad(hint, format string, args ...any) error {
	return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf(format, args...), Hint: hint}
}

// UnknownAgent returns the error for a request that names an agent that does not exist or cannot be used.
func UnknownAgent(hint, format string, args ...any) error {
	return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf(format, args...), Hint: hint, Reason: client.ReasonUnknownAgent}
}

// Forbidden is the error for a request that this node must not execute.
func Forbidden(hint, format string, args ...any) error {
	return &client.Error{Code: client.CodeForbidden, Text: fmt.Sprintf(format, args...), Hint: hint}
}

// IsForbidden reports whether an error is one of Forbidden.
func IsForbidden(err error) bool {
	var known *client.Error
	return errors.As(err, &known) && known.Code == client.CodeForbidden
}
