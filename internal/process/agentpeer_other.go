//go:build !linux

package process

import "net"

// IsAgentPeer reports whether a program of an agent holds the other end of a local
// connection. This system does not say.
func IsAgentPeer(net.Conn) bool { return false }

// IsAgentPeerTCP is IsAgentPeer for the two addresses of a TCP connection, as the server sees them.
func IsAgentPeerTCP(_, _ string) bool { return false }
