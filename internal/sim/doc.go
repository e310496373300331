// Package sim plays whole runs of the pure machines from one number.
//
// A seed fixes everything: the run that a client asks for, what models, tools
// and people do, the order in which things happen, and which faults strike.
// The logs are slices of bytes, the clock is a counter, and the code between
// them is the real one: actors/life (Life, Outbox, the machines), agent,
// supervisor, budget and the codec of mailbox. Only the shell is the
// simulator's own (shell.go): it drives a Life as the shells of package actors
// do. A run has no goroutine, no clock and no chance but its seed's.
//
// # How to run it
//
//	go test ./internal/sim                                        300 seeds, and nine places of ten reached
//	go test ./internal/sim -run TestSeeds -sim.seeds=20000 -v      more, and every place reached, with figures
//	go test ./internal/sim -run TestSeeds -sim.from=5000000        other ones
//	go test ./internal/sim -run 'TestSeed$' -sim.seed=N -v         one, step by step
//	go test ./internal/sim -run 'TestSeed$' -sim.seed=N -sim.faults=BITS -v
//	go test ./internal/sim -run 'TestSeed$' -sim.script=FILE       a script that a failure has left
//	go run ./internal/sim/mutants                                 the test of the test
//
// A seed that fails leaves its script in the temporary directory: a text with
// one line for each thing that happened. The script is replayed by playing its
// seed and comparing line by line, so a script also shows when the program has
// changed and no longer does what it did. The report names the smallest set of
// faults with which the same seed still fails.
//
// # What is checked
//
// The judge stands outside. shadow.go reads every log the moment it grows, with
// a Life that never acts; each shell must have the shadow's state at the same
// entry, each letter in a log must be what its sender's log says, must be
// stepped exactly once, and a claimed floor or a Closed must be true. ledger.go
// is what the world saw: model calls by lease, tools begun by attempt, what the
// provider counted; and a validator of requests that is stricter than any
// provider. watch.go and watch_run.go look at every step of every log: the pool
// adds up and stays within its limit, nothing begins after a cancel, nobody is
// born below the dead or beyond a limit, a parent reads its child's answer
// after the child's end, those who wait for money are served in order, timers
// count from their time on. futures.go steps several futures from one state,
// which must not touch each other, and offers answers to questions that were
// never asked, which must change nothing. In the end every log is closed, the
// run was published once, nothing is reserved, and no bill is above what was
// charged; and it ends without waiting for a time limit, or it counts as hung.
//
// The manners of the loop have a judge of their own (watch_loop.go,
// watch_begin.go, watch_goal.go, watch_fold.go), which reads the log with its own
// eyes: what the answers of hooks at a gate come to, which calls may begin, that
// each life asks at a gate once and nothing begins while it is open; that no
// denied or forbidden call runs, that what a guardrail did not pass is in no
// result, that retries, blocks, nudges, recoveries and tries are within their
// numbers, that what is claimed is in the record, that the transcript only grows,
// that a prompt begins with the prompt before it unless something was folded,
// that the task and its evidence never leave it, and that who waits says for what.
//
// # Faults
//
// A swarm: each seed has each kind on or off.
//
//	crash        a shell, or all of them, dies between two steps; what it had in flight vanishes or lands later,
//	             what its tools and models have done is lost
//	panic        a shell dies and starts again under the same lease
//	lost-ack     an append lands, its acknowledgement does not: the same bytes land again
//	ghost        a copy of an append lands at any later time, from the dead too; commands come twice
//	failing      an append fails while its process lives, and is tried again
//	two-holders  a second shell starts while the first one lives
//	zombie       a shell is frozen, others may take over, and it thaws: it posts what its tools return, and notices
//	             that its lease has run out before it touches the world
//	unfenced     … it does not notice
//	bucket       lease revisions start again, below what logs hold
//	cancel       the run or an agent, by the supervisor or past it, now or at a boundary, before birth too; aimed at
//	             delegations under way
//	tiny         budgets of a few calls, in tokens or money
//	overrun      the provider bills beyond its rules
//	storm        models delegate wherever they can
//	truncate     an agent's log loses its tail
//	rot          a bit changes under a floor that a life in force has claimed, or the entries before it are gone
//	garbage      random bytes, strangers, forged own entries, commands without an id, unknown kinds
//	steer        users speak to agents
//	clock        short time limits, timers that fire early, stamps that go back
//	veto         policies against stops and turns, replaced while the run lives
//	limits       limits are raised, and lowered to what is committed, while the run lives
//	slow         nobody starts a child for a long time
//	hand-over    a shell reads no more, ends what it began, says Released and is gone; another one goes on
//	rest         who waits has no shell: its next entry, or the time that it has said, starts one; whoever looks for work
//	             knows of it no more than the newest entry of its log and how many there are
//	hostile      the model has a vice: the same call for ever, endless pieces, prompts that are always too long, claims
//	             without proof, forbidden tools, cut arguments, texts that fit no entry …, or another one for each reply;
//	             tools are no better
//	refusals     providers refuse everybody for a while, and say for how long, or less, or nothing; the gates are the real ones
//	kin          children work in the background, and agents send each other messages
//	absent       nobody answers what the run asks; in the end somebody cancels it
//
// After plan.faultSteps steps all faults end; from then on the run has to come
// to its end by itself. A hostile model stays hostile: only limits end its runs.
// In one seed of 200 a reply makes 100,000 calls. In every seed the model
// misbehaves by its temper: unknown tools, bad and cut arguments, empty replies,
// cut text, errors of every class with and without a partial reply, unknown
// usage, calls in a closing turn.
//
// The gates before the models judge with gates.go and watch_gate.go: no request
// is sent before the time that its provider has named, to anybody, in the life of
// the node; who waits holds no lease, is let in in turn with others, and gives up
// when its patience ends, not before; a lease that comes back was never used.
//
// Manners (manners.go) are drawn like faults: hooks stand in every seed, and
// crash, hang, answer nonsense, twice and too late (hooks.go); the others are on
// or off: watches (detectors and breakers), goals (evidence, schemas, budgets to
// use up), folds (small windows), falls (fallback models).
//
// # Every prefix
//
// TestEveryPrefix records runs and steps, from every entry of every agent's
// log, futures in which the agent is canceled there, its shell crashes there,
// or both. Each future ends, and package strict, which shares no code with the
// loop, judges what was sent and what is left behind as the adapters write it
// for both providers:
//
//	go test ./internal/sim -run TestEveryPrefix -sim.runs=500 -v
//
// # Places
//
// reach.go names the corners that a suite has to have been in. TestSeeds fails
// when one was never reached: a green run that never saw a takeover proves
// nothing. With fewer than 2,000 seeds one place in ten may be missing. A new rule with a
// corner of its own gets a Place. Every transition of the loop and every stop
// reason that needs no person is one.
//
// # Mutants
//
// A simulator is trusted only as far as it has noticed what was broken on
// purpose. The tables of the command mutants list rules with the edit that drops
// each one. The command compiles the simulator with the edit laid over the tree
// and plays seeds until one fails. It fails when a mutant survives.
//
// An edit finds its line by a marker, a comment //mutant:NAME at the end of the
// line, and changes the syntax tree there: it drops the statement, decides the
// condition, deletes a term. A marker moves with its line, so a rename needs no
// change of the table; where code is rewritten, the marker goes to the line that
// now implements the rule. The comment of the command says how to add a mutant.
// Its test takes seconds and notices a lost marker and a mutant that no longer
// compiles. A mutant that cannot be noticed because another rule covers it is an
// argument for dropping one of the two.
//
// # What is not modelled
//
// Actors that are given up (life.Starts), the store of blobs, shards and read-ahead, a full stream,
// and two bits of rot at once. Of a log that was
// spoiled only this is asked: that it is noticed where PROTOCOL P13 can notice
// it, that what is known to be damaged halts, and that the run ends. Where
// others fill the gap of a truncated log before the next claim, P13 sees
// nothing but a lease that the log does not know of; and a call begins again
// whose Started, and nothing that the supervisor has heard of, was lost.
package sim
