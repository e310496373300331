//go:build !linux && !darwin && !freebsd

package statedir

import "net"

// checkPeer accepts every peer, because this system does not report the user of a process.
// The directory of the socket, in which only this user can write, is the proof.
func checkPeer(*net.UnixConn) error { return nil }
