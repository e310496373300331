// Package agent is the agent loop as a value: Step takes a State and an Input and
// returns the next State and the Effects for the outside world. It is total and
// deterministic; it has no clock, goroutine, random number, network or logger.
// Times and token counts arrive in facts.
//
// Each family of behaviour has its file, here in the order in which a turn meets them:
//   - facts.go, state.go, transcript.go: the facts, what the loop knows, the conversation
//   - spending.go, failures.go, modelroute.go, modelset.go, shellstate.go, correspondence.go: parts of the state:
//     what was used, what failed in a row, the model in use, the activation, mail of other agents
//   - call.go, callkind.go, callprogress.go: a call: who answers it, its stage and attempts, what it came to
//   - turn.go, allowance.go, limit.go: the turn boundary, grants and replies; attempts ahead of a grant; which limit
//     is used up
//   - prompt.go, contextset.go, forcedtool.go, compact.go, fold.go, ladder.go, estimate.go: the prompt of a request,
//     and what to do when it is too large
//   - hooks.go, gate.go, guard.go, transform.go, verdict.go: which hooks run where, and what their answers mean
//     together
//   - recover.go, fallback.go, pause.go: cut, empty and failed replies; the next model; waiting for a throttled one
//   - check.go, dispatch.go, calllist.go, retry.go, steering.go: which calls may run, in which batches; what a
//     person's message keeps from beginning
//   - ask.go, quorum.go, permission.go, narrowing.go, taint.go: questions, approvals and their expiry; text from
//     outside that an agent has read
//   - loopdetection.go, breaker.go: loops, and when detection escalates
//   - goal.go, obstacle.go, reportedobstacle.go, declare.go, stop.go, policyfacts.go: whether a claimed completion
//     is one
//   - closing.go, partial.go, limitnotes.go: the closing turn, the result without a model, notes about limits that
//     are near
//   - journal.go, journal_tools.go: the run journal
//   - importedhistory.go, historyparts.go, mend.go, importedtools.go, fork.go: imported history, forks
//   - peers.go, backlog.go, handoff.go: background children and messages between agents; shared tasks; handed-off
//     conversations
//   - suspension.go, rest.go, worktime.go, timer.go: what a waiting agent waits for, whether it may leave memory,
//     working time
//   - cancel.go, resume.go, reapproval.go, drift.go: what a cancel and a crash leave behind
//   - status.go, logverification.go: whether a log has lost its tail
//   - output.go, finishedstep.go, *events.go: events: each decision publishes its own, the end of a step orders them
package agent
