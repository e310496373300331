package sim

// effectJudge records which calls and hooks the world saw begin, and which of them could.
type effectJudge struct {
	*environment
	begun     map[callKey]int  // tools begun
	announced map[string]bool  // Started entries that an activation has appended, by their ids
	started   map[callKey]bool // current Started in the log
	approved  map[callKey]bool // a person approved that it runs again
	gates     map[gateKey]int  // hooks run
	originals map[callKey]bool // of a fork: calls that its original had under way
}

func newEffectJudge(env *environment) *effectJudge {
	return &effectJudge{environment: env, begun: map[callKey]int{}, announced: map[string]bool{}, started: map[callKey]bool{}, approved: map[callKey]bool{}, gates: map[gateKey]int{}, originals: map[callKey]bool{}}
}

// checkMayBegin checks that nothing begins once this activation has read a cancel, or is done. (A
// Granted and a Canceled in the same entry count as one reading.)
func (j *effectJudge) checkMayBegin(sh *shell, what string) {
	if sh.postponing {
		return // it was decided before: it waited for the lease
	}
	if sh.canceled {
		j.fail(nothingAfterCancel, "%s: %s begins after the cancel was read", sh.actor.id, what)
	}
	if sh.ended {
		j.fail(nothingAfterCancel, "%s: %s begins after the end", sh.actor.id, what)
	}
}
