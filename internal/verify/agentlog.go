package verify

// agentLog is the log of an agent beside its run: with what the agent has asked of the supervisor. Its checks find what the
// agent, or its supervisor in its name, must not have done.
type agentLog struct {
	*log
	run     *verifier
	account *account
}

// agentLog returns the log of an agent beside the run.
func (v *verifier) agentLog(l *log) *agentLog { return &agentLog{l, v, v.account(l.at)} }

// check checks all that concerns the agent alone, and its messages to the supervisor.
func (l *agentLog) check() {
	l.checkAnswers()
	l.checkCalls()
	l.checkStop()
	l.checkRights()
	l.checkContexts()
	l.checkNarrowings()
}
