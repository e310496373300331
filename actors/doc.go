// Package actors runs the pure machines as protoactor actors: one shell for each agent and
// each supervisor. A shell reads its log, lets the machine decide, and carries the decisions
// out; it decides nothing itself.
//
// The package follows three rules. Log first: the shell appends the result of its own work to
// its own log and reads it back like every other entry. One concurrency idiom: a goroutine
// does work that blocks and sends its result to its actor; no channel, mutex or future. Cleanup
// uses a context that is not canceled.
//
// The files:
//   - node.go, router.go, shell.go: the node; the router, which finds or starts the shell of an entry; a shell
//   - actions.go, work.go, attempt.go, hooks.go: a shell carries out what the activation and the machines decided:
//     appends, tools, model calls, hooks
//   - throttles.go: one actor shares what a provider allows among all model calls of the node
//   - media.go, blobs.go, progress.go: bytes that no log holds: media, whole results and contents of files; how far
//     a call has come
//   - behind.go, replays.go: bounds: the entries that wait for a shell, the replays at once
//   - rest.go, passivated.go, admit.go: passivation: idle shells, passivated actors and when each is due; agents of
//     runs that are queued
//   - holds.go, handover.go: whose logs the node acts on: superseded shells, planned hand-offs
//   - giveup.go, ended.go, late.go, newerlog.go: crashed shells, closed logs, results without a shell, logs of newer
//     programs
package actors
