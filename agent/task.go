// Package agent is the agent loop as a value: Step takes a State and an Input and
// returns the next State and the Effects for the outside world. It is total and
// deterministic; it has no clock, goroutine, random number, network or logger.
// Times and token counts arrive in facts.
//
// One file holds one family of behaviour: turn.go (assemble, continue, exits),
// recover.go (malformed replies, cut output, failed models), dispatch.go (tool
// calls), cancel.go, stop.go (proposals and vetoes), resume.go.
package agent
