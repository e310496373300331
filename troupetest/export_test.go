package troupetest

import "time"

// LimitRuns changes how long a run may take.
func (n *Node) LimitRuns(limit time.Duration) { n.runMax = limit }
