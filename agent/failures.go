package agent

// failureStreaks counts what has failed in a row between the loop and its model. Each limit of Task.Limits bounds one of
// the counts; a success ends its streak.
type failureStreaks struct {
	Useless      int          // malformed replies in a row
	Cuts         int          // cut outputs in a row
	Retries      int          // failed attempts in a row
	ThrottleWait throttleWait // the refusals of the throttle of the model
}

// mayRetry reports whether another attempt is allowed: failed attempts in a row
// are bounded, including those after which the agent waited for the throttle.
func (f failureStreaks) mayRetry(most int) bool { return f.Retries+f.ThrottleWait.Own < most } //mutant:model-retried-for-ever

// withoutWait returns the streaks after a wait for the throttle: its number stays, so that a late end of it is recognized.
func (f failureStreaks) withoutWait() failureStreaks {
	f.ThrottleWait = throttleWait{N: f.ThrottleWait.N}
	return f
}

// withoutUseless returns the streaks after a reply from which the loop can go on.
func (f failureStreaks) withoutUseless() failureStreaks {
	f.Useless, f.Cuts = 0, 0
	return f
}
