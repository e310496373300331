//go:build !linux && !darwin && !freebsd

package bus

import "net"

// checkPeer: this system does not say whose a process is. The directory of the socket,
// which only this user can write in, is the proof.
func checkPeer(*net.UnixConn) error { return nil }
