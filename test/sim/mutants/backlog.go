package main

// ofBacklog lists mutants of the rules of the backlog that the agents of a run share.
var ofBacklog = []Mutant{
	{"lease-ignored", "a task is claimed again only if the lease of its agent has ended", []Edit{{"lease-ignored", Replace(`return t.state == taskOpen || t.state == taskClaimed && t.holder != m.ID`)}}},
	{"leases-not-renewed", "each message of an agent renews its leases", []Edit{{"leases-not-renewed", Replace(`s.Inquiry.LastMessage = s.Now`)}}},
	{"claim-given-twice", "an agent that is told that a task is its own has it", own(Drop)},
	{"done-without-a-claim", "only the agent that has a task reports it as done", own(Never)},
	{"tasks-kept-by-the-ended", "the end of an agent opens its tasks again", own(Drop)},
}
