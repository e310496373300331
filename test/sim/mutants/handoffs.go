package main

// ofHandoffs are the rules of conversations that are handed off.
var ofHandoffs = []Mutant{
	{"goes-on-after-a-handoff", "K9: who has handed off ends with the answer of the other agent", own(Replace(`return o, false`))},
	{"handoff-beside-calls", "K9: a handoff is the only call of its reply", own(Never)},
	{"handoffs-unlimited", "K9: handoffs of one conversation are limited", own(Never)},
	{"steering-stays-with-the-caller", "K9: what is said to one that has handed off is passed on", own(Drop)},
}
