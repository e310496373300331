package main

// ofLanes lists mutants of the rules of lanes: the queue of a conversation.
var ofLanes = []Mutant{
	{"two-active-runs", "E5: one run of a conversation is active, and the first of the queue begins next", own(Never)},
	{"message-doubled", "E5: a message that is posted twice is in its lane once", own(Without(1, 2))},
	{"lane-deleted-while-busy", "K1: a conversation with an active run cannot be deleted", own(Always)},
	{"lane-of-two-owners", "E5: the runs of a conversation have one owner", own(Always)},
	{"dead-starter-keeps-the-lane", "E5: another process starts the run if the one that began it dies", own(Without(2, 2))},
}
