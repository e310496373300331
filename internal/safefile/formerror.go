package safefile

import "fmt"

// FormError says at which line a file has not the form that it should have, and why.
type FormError struct {
	Line int    // 0: unknown
	Why  string // quotes nothing of the file
	Full error  // may quote the file
}

func (e *FormError) Error() string { return e.Full.Error() }

// Unwrap returns the whole error.
func (e *FormError) Unwrap() error { return e.Full }

// publicText is what a client may read that must not read the file.
func (e *FormError) publicText() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Why)
	}
	return e.Why
}
