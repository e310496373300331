package names

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// NodeNameBytesMax is the most bytes that the name of a node may have. It is part of a key, and so of a subject: a
	// NATS server closes a connection for good that sends a longer line than it accepts.
	NodeNameBytesMax = 64
	// nodeIDBytesMax is the most bytes of the id of a node: the name, a hyphen, and eight digits.
	nodeIDBytesMax = NodeNameBytesMax + 9
)

// ErrNodeName says that a text cannot be the name of a node.
var ErrNodeName = errors.New("names: not the name of a node: at most 64 bytes, all of them of visible characters or spaces")

// CheckNodeName reports whether s can be the name of a node; "" stands for the default.
func CheckNodeName(s string) error { return checkNode(s, NodeNameBytesMax) }

// CheckNodeID reports whether s can be the name or the id of a node.
func CheckNodeID(s string) error { return checkNode(s, nodeIDBytesMax) }

func checkNode(s string, bytesMax int) error {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if len(s) > bytesMax || !utf8.ValidString(s) || strings.ContainsFunc(s, hidden) {
		return fmt.Errorf("%w: %.80q", ErrNodeName, s)
	}
	return nil
}
