// Package agent is the agent loop as a value: Step takes a State and an Input and
// returns the next State and the Effects for the outside world. It is total and
// deterministic; it has no clock, goroutine, random number, network or logger.
// Times and token counts arrive in facts.
//
// Each family of behaviour has its file; ARCHITECTURE.md lists them in the order in which a
// turn meets them.
package agent
