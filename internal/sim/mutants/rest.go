package main

const (
	restGo      = "actors/life/rest.go"
	agentRestGo = "agent/rest.go"
	machinesGo  = "actors/life/machines.go"
)

// ofRest are the rules of actors that wait and have no shell.
var ofRest = []Mutant{
	{"rests-over-what-came-meanwhile", "P19: the newest entry speaks for the whole log only if nothing came between it and what it has read", []Edit{
		{restGo, " || e.Floor+1 != entries {", " {"}}},
	{"rests-with-letters-out", "P19: who rests has all its letters out", []Edit{
		{restGo, " || !l.Outbox.Empty() {", " {"},
		{restGo, " || e.Floor+1 != entries {", " || e.Floor > entries {"}}},
	{"rests-without-its-due-time", "P11, P19: who rests says when it is due", []Edit{
		{machinesGo, "{ return a.State.Rests() }", "{\n	_, ok = a.State.Rests()\n	return 0, ok\n}"}}},
	{"wakes-without-claim", "P1: who wakes claims its log, as after a crash", []Edit{
		{lifeGo, "		case item.Kind == \"closed\":\n			l.Phase = Closed\n", "		case item.Kind == \"closed\":\n			l.Phase = Closed\n		case item.Kind == \"released\" && l.Phase == Folding:\n			l.Phase = Alive\n"}}},
	{"rests-with-a-tool-under-way", "P3, P19: who rests has nothing under way", []Edit{
		{agentRestGo, "		return !c.remote() && (s.Query.Query == \"\" || s.Query.Call != c.ID)\n", "		return false\n"}}},
	{"rests-while-its-model-answers", "P3, P19: who rests has nothing under way", []Edit{
		{agentRestGo, "	case \"\", Leasing, Acting, Stopping, Waiting:", "	case \"\", Leasing, Thinking, Acting, Stopping, Waiting:"}}},
	{"forgets-the-retry-of-a-call", "P11, P19: the retries of calls are among what is due", []Edit{
		{agentRestGo, "	for _, fx := range s.clocks() {\n", "	for _, fx := range s.clocks()[:0] {\n"}}},
	{"late-timers-are-not-due", "P11: a timer that came due at rest fires at the next start", []Edit{
		{resumeGo, "		fx = append(fx, s.clocks()...)\n	}\n	s.Rounds.Told = nil", "		fx = append(fx, Arm{Timer: hardTimer, Due: s.Began + s.Task.Limits.HardMS})\n	}\n	s.Rounds.Told = nil"}}},
}
