// Package supervisor is a run as a value: its members, its budget of tokens,
// money and calls, the stop veto, and cancellation. Step takes a State and an
// Input and returns the next State and Effects; like agent.Step it is total
// and deterministic and has no third argument.
//
// Each job has its files:
//   - step.go, run.go, lane.go, publish.go: the facts and their dispatch; what a run is opened with, and its state; a
//     run that waits in the lane of its conversation; the events of a step
//   - members.go, roster.go, task.go, loopoptions.go: agents begin and end; who there is, and who is below whom; the
//     task of an agent; its loop options
//   - rights.go, permissions.go, narrowing.go, taint.go: tools, hooks and permission rules of a child; rights taken
//     from live agents; text from outside
//   - contextset.go: layers of the prompt and tools of live agents
//   - money.go, runbudget.go, queue.go, allowance.go: reservations and their settlement; what is left; requests that
//     wait; attempts ahead of a grant
//   - subtreelimit.go, others.go, charge.go: limits of an agent and those below it; what other agents had of the
//     budget; charges for agents of other programs
//   - delegates.go, handoff.go, peers.go: who may delegate to whom; handed-off conversations; messages between agents
//   - backlog.go, backlogtext.go: shared tasks, and how they are described
//   - policy.go, facts.go, explain.go, validpolicy.go, policyjson.go: the stop veto: rules, what they compare, why
//     they hold, which are valid, their JSON form
//   - cancel.go, stops.go, parkclock.go, rest.go: cancellation and parked members; how far a cancel has come; the clock
//     of a parked run; whether the supervisor may leave memory
//   - damage.go, status.go: logs that have lost their tails; a supervisor that asks its members
//   - place.go, report.go, summary.go: in which node pool an agent lives; the result of the run; what requests about
//     it need
package supervisor
