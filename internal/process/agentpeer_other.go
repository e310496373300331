//go:build !linux

package process

import "net"

// HeldByAgent reports whether a program of an agent holds the other end of a local connection. This system does not say.
func HeldByAgent(net.Conn) bool { return false }

// HeldByAgentTCP is HeldByAgent for the two addresses of a TCP connection, as the server sees them.
func HeldByAgentTCP(_, _ string) bool { return false }
