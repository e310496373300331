package main

// ofSteering are the rules of messages of users that take effect at once.
var ofSteering = []Mutant{
	{"preempted-call-begins", "A25: calls that have not begun do not begin after such a message", own(Always)},
	{"request-without-the-message", "A25: no request begins without the message", own(Never)},
	{"steering-cuts-a-side-effect", "A25: a side effect that has begun completes", own(Without(2, 3))},
}
