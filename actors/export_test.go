package actors

import "github.com/troupe-run/troupe/mailbox"

// SayEnded is what a shell tells the router that is through with its log up to place.
func (n *Node) SayEnded(at mailbox.Address, place uint64) {
	n.system.Root.Send(n.router, logEnded{at, place})
}
