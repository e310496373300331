package main

const (
	pauseGo    = "agent/pause.go"
	queueGo    = "gate/queue.go"
	refusalsGo = "gate/refusals.go"
)

// ofGates are the rules of the gates before the models.
var ofGates = []Mutant{
	{"ignores-retry-after", "G6: a pause is as long as the provider asks", []Edit{
		{refusalsGo, "	pause := max(min(max(e.AfterMS, 0), g.limits.PauseMax), backoff(g.limits.BackoffMin, g.limits.BackoffMax, g.streak-1))", "	pause := backoff(g.limits.BackoffMin, g.limits.BackoffMax, g.streak-1)"}}},
	{"shorter-pause-wins", "G6: a later refusal does not shorten the pause", []Edit{
		{refusalsGo, "	if g.until < end {", "	if g.until != end {"}}},
	{"forgets-fair-share", "G6: runs take turns", []Edit{
		{queueGo, "	q.ring = q.ring.Delete(l.turn)\n	q.turn++\n	l.turn = q.turn\n", ""}}},
	{"lease-waits-at-the-gate", "G6: who holds a lease does not wait long", []Edit{
		{"gate/gate.go", "wait > 0 && g.now+wait <= w.since+g.limits.Hold {", "wait > 0 {"}}},
	{"gate-wait-holds-its-lease", "G6: who waits at the gate has given its lease back", []Edit{
		{pauseGo, "	return s, []Effect{Settle{Lease: s.Lease, Turn: s.Turn + 1, Unused: true}}", "	return s, nil"}}},
	{"refused-lease-is-spent", "P21: a refusal that is documented as unbilled costs nothing", []Edit{
		{pauseGo, "Turn: s.Turn + 1, Unused: true}}", "Turn: s.Turn + 1, Lost: true}}"}}},
	{"storm-kills", "G6: refusals pause a loop and do not end it", []Edit{
		{pauseGo, "	return s.patience() > 0 && f.Unbilled &&", "	return s.patience() > PatienceMax && f.Unbilled &&"}}},
	{"patience-without-end", "G6: a wait at the gate ends", []Edit{
		{pauseGo, "	if due := s.impatientAt(); s.Now < due {", "	if due := s.impatientAt(); s.Now < due+PatienceMax {"}}},
	{"turn-of-another-wait", "P7: an admission names the wait that it ends", []Edit{
		{pauseGo, " || f.Pause != s.Pause.N {", " {"}}},
	{"cancel-passes-the-gate", "B5: nothing is sent that waited at the gate when the cancel came", []Edit{
		{cancelGo, "		return s, []Effect{LeaveGate{}} // what", "		return s, nil // what"}}},
	{"wait-forgotten-by-a-crash", "F1: a wait at the gate goes on in the next life", []Edit{
		{resumeGo, "			return s, append(fx, s.atTheGate()...)\n", "			return s, append(fx, Arm{Timer: gateTimer, Due: s.impatientAt()})\n"}}},
}
