package main

// ofKin are the rules between the agents of a run: children in the background,
// and messages.
var ofKin = []Mutant{
	{"background-result-lost", "H1: a child in the background reports to its parent", own(AndAlso(`!m.Background`))},
	{"background-result-unread", "H1: what it reports is read",
		own(InsertBefore("if f.Call != \"\" {\nreturn wakeIdle(s)\n}"))},
	{"background-child-outlives-its-parent", "B5: children in the background end with their parent",
		own(ReplaceTerm(1, 1, `member.Done || member.Background`))},
	{"ends-before-its-children", "H1: who says it is done waits for its children",
		[]Edit{{"lingers-before-the-stop", Drop}, {"steered-at-the-stop", Within(1, 2, Without(2, 2))}}},
	{"idle-not-woken", "H1: what children bring wakes who waits for them", own(Unchanged)},
	{"idle-takes-a-retry's-timer", "P1: a new activation waits for the same", own(ReplaceTerm(1, 1, `AwaitsRetry, AwaitsOthers`))},
	{"leaves-in-silence", "H1: an end says whom it takes with it", own(Never)},
	{"refused-child-is-waited-for", "H1: a delegation that begins nothing is not waited for", own(Without(1, 2))},
	{"message-applied-twice", "P6: a message is read once",
		[]Edit{{"read-before", AndAlso(`item.Kind != "messaged"`)}}},
	{"message-sent-again-after-a-crash", "H3: the supervisor has the message already", own(Without(2, 2))},
	{"message-to-the-dead", "P14: a message to one that has ended is not sent",
		[]Edit{{"message-to-the-dead", Never}, {"message-to-a-dead-holder", Never}}},
	{"message-unread-at-the-end", "H3: nobody ends with a message unread",
		[]Edit{{"steered-at-the-stop", Within(1, 2, Without(2, 2))}}},
	{"message-after-the-cancel", "B5: after the cancel nothing is sent", own(ReplaceTerm(1, 1, `s.Phase == Over`))},
	{"messages-unlimited", "H3: messages of a run are limited", own(Never)},
	{"message-passes-for-a-person's", "T15: the word of an agent is quoted",
		own(InsertBefore(`quote := strings.NewReplacer()`))},
	{"message-not-answered", "B2: who sends a message is told what became of it", own(Unchanged)},
}
