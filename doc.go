// Package troupe runs agents inside a Go program. Start starts a node with the program's own
// tools, agents and models. Run gives the node a task and waits for its one result. Answer does
// the same for an answer of a Go type.
//
// The guarantees of a node hold here as well: every step is in a durable log before it takes
// effect, no request that the budget does not cover is sent to a model, and each run has exactly
// one result. Without Config.StateDir the logs last until Close; with it, the next node on the
// same directory continues the unfinished runs.
//
// The examples show a first run, a tool and a model of the program's own, delegation, typed
// answers, limits, events, questions to a person, and a run that continues after a restart. They
// need neither a key nor a network, because a script answers in place of a model.
// docs/embedding.md says more.
package troupe
