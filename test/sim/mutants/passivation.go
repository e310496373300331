package main

// ofRest are the rules of actors that wait and have no shell.
var ofRest = []Mutant{
	{"rests-over-what-came-meanwhile", "P19: the newest entry speaks for the whole log only if nothing came between it and what it has read",
		[]Edit{{"rest-covers-the-log", Without(4, 4)}}},
	{"rests-with-messages-out", "P19: who rests has all its messages out",
		[]Edit{
			{"rests-with-a-full-outbox", Without(3, 3)},
			{"rest-covers-the-log", ReplaceTerm(4, 4, `e.Floor > entries`)},
		}},
	{"rests-without-its-due-time", "P11, P19: who rests says when it is due",
		own(Replace("_, ok = a.State.Rests()\nreturn 0, ok"))},
	{"wakes-without-claim", "P1: who wakes claims its log, as after a crash",
		own(InsertAfter("case item.Kind == \"released\" && l.Phase == Replaying:\nl.Phase = Active"))},
	{"rests-with-a-tool-under-way", "P3, P19: who rests has nothing under way", own(Never)},
	{"rests-while-its-model-answers", "P3, P19: who rests has nothing under way", own(InsertBefore(`case Thinking:`))},
	{"forgets-the-retry-of-a-call", "P11, P19: the retries of calls are among what is due", own(Never)},
	{"late-timers-are-not-due", "P11: a timer that came due at rest fires at the next start",
		own(Replace(`fx = append(fx, Arm{Timer: hardTimer, Due: s.Began + s.Task.Limits.HardMS})`))},
}
