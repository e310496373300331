package safefile

import (
	"fmt"
	"strings"
)

// KeyError is the error of a key that a file may not have at its place.
type KeyError struct {
	Line  int
	Key   string
	Of    string   // what has the key: "a reply"
	Known []string // the keys that it may have
	Near  string   // the one of them that Key was probably meant to be; ""
}

// Error names the key. A message to a client that may not read the file has the text of ErrorLine instead.
func (e *KeyError) Error() string {
	if e.Near != "" {
		return fmt.Sprintf("line %d: %s has no key %q; did you mean %s?", e.Line, e.Of, e.Key, e.Near)
	}
	return fmt.Sprintf("line %d: %s has no key %.40q; its keys are %s", e.Line, e.Of, e.Key, strings.Join(e.Known, ", "))
}

// publicText names the key only where it is almost one that the file may have: any other could be a part of a file of
// another kind, which a client must not read.
func (e *KeyError) publicText() string {
	if e.Near != "" {
		return e.Error()
	}
	return fmt.Sprintf("line %d: %s has only the keys %s", e.Line, e.Of, strings.Join(e.Known, ", "))
}
