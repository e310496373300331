// Command chaos injects faults into troupe and has independent observers judge the result:
// a ledger that the side-effecting tool itself writes, a provider double that checks and
// counts every request, and the logs.
//
//	go run ./test/chaos -kills 50
//
// kills `troupe run` with SIGKILL at random moments and resumes it. It prints a row for each
// kill and exits 1 if a side effect happened twice, a completed call was repeated, a request
// was malformed, a run did not end, or a run asks the user although no call was started
// without a result.
//
//	go run ./test/chaos -nodes 3 -runs 100 -kills 10 -stops 5 -drains 5 -ttl 3s
//
// runs a cluster: one NATS server, which stays alive, and node processes that share the runs.
// At random moments a node is killed and another one started, or frozen for longer than its
// leases last and thawed, or drained and then stopped. A simulated user reads the
// ledger and answers the runs' questions. The program prints a row for each fault and the time
// from a death to the first event of each actor that was taken over. It exits 1 if
//
//   - an effect happened twice without the user's approval;
//   - a run was lost, did not end, or ended with a reason other than completed;
//   - the user was asked about a call that had not begun, or had returned;
//   - a request was malformed, or a run was charged less than the double counted
//     or more than its limit;
//   - after drains alone, an effect or a model call was repeated, the user was asked, or
//     an unknown amount was charged;
//   - with no other fault near, an actor of a dead node was taken over later than the TTL
//     plus -slack, or an actor of a drained node later than -slack;
//   - a process is left at the end.
//
// With -servers 3 the nodes use three NATS servers, which are processes too. -leaders kills
// the leader of some stream that many times (leaders.go), -cuts cuts connections between nodes
// and servers, or between servers (partition.go), -power cuts the power of all servers at
// once, -shapes that of one server while the others freeze in turn (power.go; -nodes 0 runs it
// without nodes, and -lazy is the control, which must lose entries). Next to the nodes, a recorder
// appends entries, and remembers which were acknowledged; others race for the same positions.
// The program also exits 1 if
//
//   - an acknowledged entry is not at its position, or the chain of a log is broken;
//   - two writers got an acknowledgement for the same position;
//   - an actor restarted or moved although no node had died, been cut off or lost power;
//   - a node that was cut off began a tool after the TTL.
//
// With -full the storage has no room for a while: the streams of the logs, or the disk
// beneath the server (full.go). The program exits 1 if anything begins meanwhile, or if a node
// does not report that it cannot write.
//
// With -full disk -cycles N the small disk of a node with its own server is full for 3 s,
// N times (cycles.go). It exits 1 if a run fails to end, an effect is lost or happens twice,
// or the node must be restarted.
//
// With -absences N runs are left alone for longer than their time limit: killed, frozen, or
// with a child that waits for the user (absence.go). It exits 1 if a limit counted that time.
//
// With -bombs N there are N spawn storms: runs whose agents delegate as much as they can
// (spawnstorm.go), along with ordinary runs. It exits 1 if a cap or the budget is exceeded at any
// step of their supervisors, if the storms do not reach their caps, or if the ordinary runs take
// much longer than they do alone.
//
// With -purses N there are N budget races: the 64 agents of a run reserve from one limit while
// nodes die (budgetrace.go). It exits 1 if spent and reserved amounts exceed the limit at any step,
// if the double counted more than is charged, or if no agent ever had to wait.
//
// With -watchers N, N observers connect that never read, N that read a byte a second and connect again when they are
// disconnected, N that read everything, and N pages over HTTP, in turn (watchers.go). It exits 1 if runs take more than
// 1.25 times as long (p99, median of 5 rounds) next to all but those that read everything, or if the server's memory
// grows too much.
//
// With -slow the disk beneath the servers is slow, and a node dies (slow.go). It exits 1
// if a lease of a live node is lost, if those of the dead one are not taken over within the
// TTL and -slack, or if a node grows.
//
// With -for the faults and the runs continue for that time, in the given proportions.
//
// With -trees N trees of 85 agents over all nodes are canceled while they grow, and while
// their leaves are in a model call, each N times with all nodes well, with the connections
// of one node cut (with -servers), with one frozen, and with one dead. It prints the answer
// to the cancel and how long it took until all had stopped. It exits 1 if an agent did not
// report that it stopped, or if a model call began after the acknowledgement: on a node that
// the acknowledgement names as unreachable, after the end of its lease.
//
// The nodes are built with the tag chaos (internal/failpoint), so that faults can be injected
// at named places: -points kills them around every append, outbox message and call, -zombies
// freezes them before a Started is read back, between it and the call, and inside
// the call, until another node has claimed the log, and thaws them. -busy has that many
// agents in a model call when one node dies or, with -drains 1, leaves; -cancels
// and -tokens end runs early; -poison writes entries that make their reader fail; -leaks
// checks whether anything is left of that many runs.
//
// The logs are judged as well: what superseded activations wrote must have made no
// difference, no two messages have one identity and different content, each request has its
// own reservation, each tool call its own current Started or the user's approval, and what
// was charged is what the double counted and what is lost. If a problem is found, the
// directory of the scenario is kept: every problem in full, the logs of its run, and the
// output of the nodes.
//
// With -control the tool is declared idempotent, which it is not: then the judge must
// find doubles, or it could not see any. With -full, -slow, -bombs or -watchers the
// program does what the judge looks for (control.go), and exits 1 if the judge does not find
// it.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

type options struct {
	kills   int
	seed    uint64
	troupe  string
	control bool
	broken  bool // see breakOnPurpose
	turns   int

	// Of a cluster.
	nodes, runs, stops, drains int
	points, zombies            int
	busy, leaks                int
	poison                     bool
	trees, storms, watchers    int
	races                      int
	look                       string
	cancels                    int
	tokens                     int64
	slack                      time.Duration
	node                       string
	ttl, gap, length           time.Duration
	atOnce                     int
	keep                       bool

	// Of the servers beneath it.
	servers, leaders, cuts int
	every                  time.Duration
	lazy, must             bool
	power, shapes, rots    int
	absences               int
	full                   string
	cycles                 int
	slow                   time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.kills, "kills", 50, "how many runs, or nodes of a cluster, to kill")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of the moments")
	flag.StringVar(&o.troupe, "troupe", "", "the binary; built when empty")
	flag.BoolVar(&o.control, "control", false, "negative control: the judge must find something")
	flag.IntVar(&o.turns, "turns", 6, "turns of the root")
	flag.IntVar(&o.nodes, "nodes", 0, "nodes of a cluster; 0: runs without one")
	flag.IntVar(&o.runs, "runs", 50, "runs of a cluster, at least")
	flag.IntVar(&o.stops, "stops", 0, "how many nodes to freeze")
	flag.IntVar(&o.drains, "drains", 0, "how many nodes to stop in order")
	flag.IntVar(&o.points, "points", 0, "how many nodes to kill at named places of the code")
	flag.IntVar(&o.zombies, "zombies", 0, "how many nodes to freeze at each of three places around a call")
	flag.IntVar(&o.busy, "busy", 0, "how many agents are in a model call when one node dies or, with -drains, leaves")
	flag.IntVar(&o.leaks, "leaks", 0, "how many runs begin and end; nothing of them may be left")
	flag.IntVar(&o.trees, "trees", 0, "how many times a tree of 85 agents is canceled, with all nodes well and with each fault of one node")
	flag.IntVar(&o.storms, "bombs", 0, "how many spawn storms: runs whose every agent asks for more children than it may have, beside ordinary ones")
	flag.IntVar(&o.watchers, "watchers", 0, "how many observers of each kind: stopped, slow, readers of all events, and pages over HTTP")
	flag.IntVar(&o.races, "purses", 0, "how many budget races: runs of 64 agents that spend one limit, while nodes die between reservation, call and settlement")
	flag.IntVar(&o.absences, "absences", 0, "how many runs of each kind are left alone for longer than they may work")
	flag.StringVar(&o.look, "look", "", "be the process of such observers: SERVER SUBJECT HOW-MANY KIND HTTP-URL")
	flag.IntVar(&o.cancels, "cancels", 0, "percentage of runs that two users cancel, repeatedly")
	flag.Int64Var(&o.tokens, "tokens", runTokens, "token limit of a run; a run that needs more ends by the limit")
	flag.BoolVar(&o.poison, "poison", false, "entries that make their reader fail")
	flag.DurationVar(&o.slack, "slack", 30*time.Second, "how much longer than the TTL a takeover may take, and how long a hand-off")
	flag.StringVar(&o.node, "troupe-node", "", "the binary of a node, with the tag chaos; built when empty")
	flag.DurationVar(&o.ttl, "ttl", 3*time.Second, "how long a node may be silent")
	flag.DurationVar(&o.gap, "gap", 0, "time between two faults, on average (default the TTL)")
	flag.DurationVar(&o.length, "for", 0, "duration of faults and runs, in the given proportions")
	flag.IntVar(&o.atOnce, "at-once", 16, "runs of a cluster at the same time")
	flag.BoolVar(&o.keep, "keep", false, "keep the directory, with the output of the nodes and the events of the slowest run")
	brokerFlags(&o)
	flag.Parse()
	execute := runKills
	if o.nodes > 0 {
		execute = runCluster
	}
	if o.look != "" {
		execute = runObservers
	}
	if o.rots > 0 && o.nodes == 0 {
		execute = runDamage
	}
	if o.absences > 0 {
		execute = runAbsences
	}
	if o.full == fullDisk && o.cycles > 0 {
		execute = runDiskCycles
	}
	if o.power+o.shapes > 0 && o.nodes == 0 {
		execute = runPowerLoss
	}
	if o.power+o.shapes > 0 || o.full == fullDisk {
		execute = inMountNamespace(execute)
	}
	if err := execute(o); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}
