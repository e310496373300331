// Package sim simulates whole runs of the pure machines from one number.
//
// A seed determines everything: the run that a client requests, what models, tools
// and people do, the order in which things happen, and which faults strike.
// The logs are slices of bytes, the clock is a counter, and the code between
// them is the real one: internal/activation (Step, LogReader, Outbox, the machines),
// agent, supervisor, budget and the codec of mailbox. The simulator carries out what
// activation.Step decides (processes.go, actions.go), as the shells of package actors do:
// claims, replays, leases that lapse for a while, hand-offs, passivation and the
// answers of closed logs are those of the product. A run has no goroutine, no clock and
// no randomness but its seed's.
//
// # Parts
//
// sim.go wires the parts. All share the environment: the plan of the seed, chance, the time and the script.
//
//	scheduler    draws what happens next
//	injector     injects faults between two steps; logDamager damages logs
//	population   the actors, each with its log, its shells and the shadow that reads the log
//	logStore     appends entries: they may fail, land twice, or land late
//	processes    start shells, carry out what activations decide, and end
//	executor     the calls of models, tools and hooks that are under way
//	fakeModel    answers requests; hostileModel and fakeHooks answer badly
//	throttles    the rate limiters of the node
//	users        answer questions and speak to agents
//	judges       check the run as a whole; agentJudge and its parts check one agent
//	coverage     recognizes the places that a step reaches
//
// # How to run it
//
//	go test ./test/sim                                        300 teams, and nine places of ten reached
//	go test ./test/sim -run TestSeeds -sim.seeds=20000 -v      more, and every place reached, with figures
//	go test ./test/sim -run TestSeeds -sim.from=5000000        other ones
//	go test ./test/sim -run TestAnySeeds -sim.any=20000        runs with any number of agents, one as well
//	go test ./test/sim -run 'TestSeed$' -sim.seed=N -v         one, step by step
//	go test ./test/sim -run 'TestSeed$' -sim.seed=N -sim.faults=BITS -v
//	go test ./test/sim -run 'TestSeed$' -sim.script=FILE       a script that a failure has left
//	go run ./test/sim/mutants                                 drops each rule once, and the simulator must notice
//
// TestSeeds plays teams: each run has at least three agents that have begun (teams.go). Their seeds have numbers from 10^12 on. All other
// tests play seeds below, whose runs have any number of agents.
//
// A seed that fails leaves its script in the temporary directory: a text with
// one line for each thing that happened. The script is replayed by playing its
// seed and comparing line by line, so a script also shows when the program has
// changed and no longer does what it did. The report names the smallest set of
// faults with which the same seed still fails.
//
// # What is checked
//
// The invariants have names: the list is invariants.go, and a failure begins with the name of the invariant that it breaks.
// approval-once, for example, says that an approval starts at most one call. TestInvariants fails if no judge holds an
// invariant of the list, or if a failure names none.
//
// The judge is independent. shadow.go reads every log the moment it grows, with
// a LogReader that never acts; each shell must have the shadow's state at the same
// entry, each outbox message in a log must be what its sender's log says, must be
// stepped exactly once, and a claimed ack floor or a Closed must be true. The judges
// record what the world saw: model calls by reservation and what the provider counted
// (judge_budget.go), tools begun by attempt (judge_effects.go); and wellformed.go
// accepts fewer requests than any provider. judge_run.go and judge_agent.go check every step of every log: the pool
// adds up and stays within its limit, nothing begins after a cancel, no agent is
// spawned below a dead one or beyond a limit, a parent reads its child's answer
// after the child's end, agents that wait for budget are served in order, timers
// count from the time that set them. judge_futures.go steps several futures from one state,
// which must not affect each other, and offers answers to questions that were
// never asked, which must change nothing. In the end every log is closed, the
// run was published once, nothing is reserved, and no bill is above what was
// charged; and the run ends without waiting for a time limit, or it counts as hung.
//
// The loop options have judges of their own (agentJudge and its parts: judge_calls.go, judge_goals.go,
// judge_prompts.go, judge_breakers.go), which read the log independently and check: what
// the answers of hooks at a hook point come to, which calls may begin, that each
// activation asks once at a hook point and nothing begins while it is open; that no
// denied or forbidden call runs, that no result contains what a guardrail rejected,
// that retries, blocks, nudges, recoveries and attempts stay within their
// limits, that claimed results are in the record, that the transcript only grows,
// that a prompt begins with the prompt before it unless it was compacted,
// that the task and its evidence never leave it, and that a waiting agent says for what.
//
// # Faults
//
// A swarm: each seed has each kind on or off.
//
//	crash        a shell, or all of them, dies between two steps; its entries in flight vanish or land later,
//	             the results of its tools and models are lost
//	panic        a shell dies and starts again under the same lease
//	lost-ack     an append lands, its acknowledgement does not: the same bytes land again
//	late-copy    a copy of an append lands at any later time, from dead shells too; commands arrive twice
//	failing      an append fails while its process lives, and is retried; a store is full, or a log has no leader
//	two-holders  a second shell starts while the first one lives
//	zombie       a shell is frozen, others may take over, and it thaws: its node knows that its lease has run out, so
//	             it begins nothing; it may hold the log again later, and must prove it
//	unfenced     … its node does not know
//	bucket       lease revisions start again, below what logs hold
//	cancel       the run or an agent, by the supervisor or past it, now or at a boundary, before its spawn too; aimed at
//	             delegations under way
//	tiny         budgets of a few calls, in tokens or money
//	overrun      the provider bills beyond its rules
//	storm        models delegate wherever they can
//	truncate     an agent's log loses its tail
//	rot          a bit changes under an ack floor that a current activation has claimed, or the entries before it vanish
//	garbage      random bytes, strangers, forged own entries, commands without an id, unknown kinds
//	steer        users send messages to agents
//	clock        short time limits, timers that fire early, timestamps that go back
//	veto         policies against stops and turns, replaced while the run lives
//	limits       limits are raised, and lowered to what is committed, while the run lives
//	slow         no node starts a child for a long time
//	hand-over    an activation drains: it decides nothing more, finishes its work, appends Released and exits; another
//	             activation continues
//	rest         a waiting actor has no shell: its next entry, or the due time that it appended, starts one; a node that
//	             looks for work knows only the newest entry of the log and the number of entries
//	hostile      the model misbehaves in one way: the same call for ever, endless chunks, prompts that are
//	             always too long, claims without proof, forbidden tools, cut arguments, texts that fit no entry …,
//	             or in another way for each reply; tools are no better
//	refusals     providers throttle every caller for a while, and name the delay, too short a one, or none; the rate
//	             limiters are the real ones
//	background   children work in the background, and agents send each other messages
//	handoffs     agents hand off their conversations, in chains and circles
//	subtrees     limits of an agent and those below it are raised, lowered and frozen; in the end nothing is frozen
//	narrowings   operators take rights from agents and those below them, at any moment
//	models       another model is set, for the run and its agents at work or for one agent, as in the logs of a fork
//	others       agents that are not in the run use its budget, as in the logs of a run that was made of one agent
//	absent       no user answers what the run asks; in the end a user cancels it
//
// After plan.faultSteps steps all faults end; from then on the run has to come
// to its end by itself. A hostile model stays hostile: only limits end its runs.
// In one seed of 200 a reply makes 100,000 calls. In every seed the model
// makes mistakes at random: unknown tools, bad and cut arguments, empty replies,
// cut text, errors of every class with and without a partial reply, unknown
// usage, calls in a closing turn.
//
// judge_throttles.go and judge_pauses.go judge the rate limiters of the models: no request is sent,
// by any agent, before the time that its provider has named, as long as the node
// lives; a throttled agent holds no reservation, is admitted in turn with others, and gives
// up when its patience ends, not before; a reservation that is released was never used. In one seed of six settings
// allow so many requests a minute, the provider reports twice as many, and no minute has more than the settings
// allow. In two seeds of three with refusals the families of agents have priorities, and none waits for more turns of
// others than the rule says.
//
// LoopOptions (loop_options.go) are drawn like faults: hooks exist in every seed, and
// crash, hang, answer nonsense, twice and too late (hooks.go); the others are on
// or off: watches (detectors and breakers), goals (evidence, schemas, budgets to
// use up), folds (small windows), falls (fallback models).
//
// # Forks
//
// One seed in six or so is forked when it has ended (fork.go): the product cuts its logs at a turn, mostly one
// at which other agents had something under way, and a second simulator reads the cut, gets the marks of a
// fork, at times another limit and another model, and plays on to the end. All judges hold for it. Its states
// are the original's entry by entry; it is not charged for a request of its original, and repeats nothing by
// itself that its original had begun.
//
// # Every prefix
//
// TestEveryPrefix records runs and steps, from every entry of every agent's
// log, futures in which the agent is canceled there, its shell crashes there,
// or both. Each future ends, and package conformance, which shares no code with the
// loop, judges the requests that were sent and the transcript that is left, as the
// adapters render them for both providers:
//
//	go test ./test/sim -run TestEveryPrefix -sim.runs=500 -v
//
// # Places
//
// places.go names the corner cases that a suite must reach. TestSeeds fails
// when one was never reached: a green run that never saw a takeover proves
// nothing. With fewer than 2,000 seeds one place in ten may be missing. A new rule with a
// corner case of its own gets a place. Every transition of the loop and every stop
// reason that needs no person is one.
//
// # Mutants
//
// A simulator is only as trustworthy as the bugs that it has noticed when they were put in
// on purpose. The tables of the command mutants list rules with the edit that drops
// each one. The command compiles the simulator with the edit laid over the tree
// and runs seeds until one fails. It fails when a mutant survives.
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
// # Outside the model
//
// Members that represent agents of other programs, actors that are given up (activation.UnfinishedStarts), the store of blobs, shards, the bound of read-ahead,
// and two bits of rot at once. For a damaged log the
// simulator checks only that the damage is noticed where PROTOCOL P13 can notice
// it, that a log known to be damaged halts, and that the run ends. Where
// other entries fill the gap of a truncated log before the next claim, P13 notices
// only a reservation that the log does not contain; and a call begins again
// if the lost entries include its Started, but nothing that the supervisor had read of. Where a
// supervisor's log lost its tail, and the log reuses the identity of a lost message
// that was read for other content, the counts of both sides are equal: nothing
// reveals the loss, and a cancel ends the run.
package sim
