package main

// ofSubtrees lists mutants of the limits of an agent and the agents below it.
var ofSubtrees = []Mutant{
	{"subtree-unlimited", "G1: an agent and those below it stay within their limit", []Edit{{"subtree-unlimited", Replace(`room := unlimitedAmount`)}}},
	{"subtree-counts-only-itself", "G1: what agents below use counts against the limit of a subtree", own(Drop)},
	{"frozen-subtree-goes-on", "G1: a frozen subtree gets no reservation", own(Replace(`return false`))},
	{"thawed-agents-wait-for-ever", "G1: agents continue when their subtree is unfrozen", own(Drop)},
	{"frozen-time-counts", "B4: time in a frozen subtree is no time at work", own(Replace(`return false`))},
}
