// Command chaos does to troupe what the world may do to it, and lets outsiders
// judge: a ledger that the side-effecting tool itself writes, a provider double
// that judges and counts every request, and the logs.
//
//	go run ./internal/chaos -kills 50
//
// kills `troupe run` with SIGKILL at random moments and resumes it. It prints a
// row for each kill and exits 1 if a side effect happened twice, a completed
// call was repeated, a request was malformed, a run did not end, or a run asks
// for a person without a call that was started and not returned.
//
//	go run ./internal/chaos -nodes 3 -runs 100 -kills 10 -stops 5 -drains 5 -ttl 3s
//
// is a cluster: one NATS server, which lives, and node processes that share the
// runs. At random moments a node is killed and another one started, or frozen
// for longer than its leases last and thawed, or asked to leave and stopped in
// order. A person, who reads the ledger, answers what the runs ask. It prints a
// row for each blow, the time from a death to the first sign of life of each
// actor that was taken over, and exits 1 if
//
//   - an effect happened twice, and nobody had approved that;
//   - a run was lost, did not end, or ended otherwise than completed;
//   - a person was asked about a call that was not begun, or had returned;
//   - a request was malformed, or a run was charged less than the double counted
//     or more than its limit;
//   - after nothing but drains an effect or a model call was made again, a person
//     was asked, or something was charged that nobody knows of;
//   - an actor of a node that died was taken over later than the TTL and -slack, or one
//     of a node that was drained later than -slack, and no other blow was near;
//   - a process is left at the end.
//
// With -servers 3 the nodes meet at three NATS servers, which are processes too,
// and -leaders kills the leader of some stream so often (leaders.go), -cuts cuts wires
// between nodes and servers, or between servers (partition.go), -power takes the
// power of all servers at once, -shapes of one while the others freeze in turn
// (power.go; without nodes it takes 0 of them, and -lazy is the control, which must
// lose entries). Beside the nodes a recorder appends, and keeps what was
// acknowledged; others race for the same places. It exits 1 also if
//
//   - an entry that was acknowledged is not at its place, or a log is no chain;
//   - two writers were told that they wrote after the same entry;
//   - an actor began anew or moved, and no node had died, been cut off or lost power;
//   - a node that was cut off began a tool after the TTL.
//
// With -full there is no room for a while: in the streams of the logs, or on the disk
// beneath the server (full.go). It exits 1 if anything begins meanwhile, or if a node
// does not say that it cannot write.
//
// With -full disk -cycles N a node with its own server, on a small disk, has no room for
// 3 s N times (cycles.go). It exits 1 if a run fails to
// end, an effect is lost or happens twice, or the node must be started again.
//
// With -absences N runs are left alone for longer than they may work: killed, frozen, or
// with a child that waits for a person (absence.go). It exits 1 if a limit counted that.
//
// With -bombs N runs spawn all that they may (bomb.go) beside ordinary ones. It exits 1
// if a cap or the budget is exceeded at any step of their supervisors, if they do not
// reach their caps, or if the ordinary runs take much longer than alone.
//
// With -purses 64 agents of a run reserve out of one limit while nodes die (purse.go).
// It exits 1 if more is spent and held than the limit at any step, if the double counted
// more than is charged, or if nobody ever had to wait.
//
// With -watchers half as many observers look on who do not read, then so many of whom
// half do (watchers.go). It exits 1 if those that do not read make runs take twice as long,
// or the server grows too much.
//
// With -slow the disk beneath the servers is slow, and a node dies (slow.go). It exits 1
// if a lease of a node that lives is lost, if those of the dead one are not taken over
// within the TTL and -slack, or if a node grows.
//
// With -upgrade nodes of two builds are side by side (upgrade.go). It exits 1 if a run
// begins under newer rules while an old node lives, or if an old node writes anything
// but its claim into a log under newer rules.
//
// With -for the blows and the runs go on for so long, in the given proportions.
//
// With -trees N trees of 85 agents over all nodes are canceled while they grow, and while
// their leaves are in a model call, each N times with all nodes well, with the wires of
// one node cut (with -servers), with one frozen, and with one dead. It prints what the
// cancel was answered and how long it took until all had stopped. It exits 1 if one did
// not say so, or if a model call began after the acknowledgement: on a node that the
// acknowledgement names as unreachable, after the end of its lease.
//
// The nodes are built with the tag chaos (internal/trap), so that they can be struck
// at named places: -points kills them around every append, letter and call, -zombies
// freezes them before a Started is read back, between it and the call, and inside
// the call, until somebody else has claimed the log, and thaws them. -busy has so
// many agents in a model call when one node dies or, with -drains 1, leaves; -cancels
// and -tokens end runs early; -poison writes entries that nobody survives who reads
// them; -leaks looks whether anything is left of so many runs.
//
// The logs are judged as well: what superseded lives wrote must have made no
// difference, nobody says two things under one identity, each request has its own
// lease, each call of a tool its own Started in force or a person's word, and what was
// charged is what the double counted and what is lost. If anything is found, the
// directory of the play is kept: every problem whole, the logs of its run, and what
// the nodes wrote.
//
// With -control the tool is declared idempotent, which it is not: then it must
// find doubles, or it could not see any. With -full, -slow, -bombs, -watchers or -upgrade
// it does what their judges look for (control.go), and exits 1 if they do not find it.
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
	broken  bool // see sabotage
	turns   int

	// Of a cluster.
	nodes, runs, stops, drains int
	points, zombies            int
	busy, leaks                int
	poison                     bool
	trees, bombs, watchers     int
	purses                     int
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

	// Of an upgrade.
	upgrade bool
	younger string // binary
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
	flag.IntVar(&o.busy, "busy", 0, "so many agents are in a model call when one node dies or, with -drains, leaves")
	flag.IntVar(&o.leaks, "leaks", 0, "so many runs begin and end, and nothing of them may be left")
	flag.IntVar(&o.trees, "trees", 0, "so many times a tree of 85 agents is canceled, and once more with a node cut off")
	flag.IntVar(&o.bombs, "bombs", 0, "so many runs whose every agent wishes for more children than it may have, beside ordinary ones")
	flag.IntVar(&o.watchers, "watchers", 0, "so many observers of all events, of which half read nothing and one a byte a second")
	flag.IntVar(&o.purses, "purses", 0, "so many runs of 64 agents that spend one limit, while nodes die between reservation, call and settlement")
	flag.IntVar(&o.absences, "absences", 0, "so many runs of each kind are left alone for longer than they may work")
	flag.StringVar(&o.look, "look", "", "be the process of such observers: SERVER SUBJECT HOW-MANY READERS")
	flag.IntVar(&o.cancels, "cancels", 0, "of 100 runs so many are canceled, by two people, again and again")
	flag.Int64Var(&o.tokens, "tokens", runTokens, "what a run may spend; with less than it needs it ends by that")
	flag.BoolVar(&o.poison, "poison", false, "entries that whoever reads them does not survive")
	flag.DurationVar(&o.slack, "slack", 30*time.Second, "how much longer than the TTL a takeover may take, and how long a hand-over")
	flag.StringVar(&o.node, "troupe-node", "", "the binary of a node, with the tag chaos; built when empty")
	flag.DurationVar(&o.ttl, "ttl", 3*time.Second, "how long a node may be silent")
	flag.DurationVar(&o.gap, "gap", 0, "time between two blows, on average (default the TTL)")
	flag.DurationVar(&o.length, "for", 0, "go on for so long, in the given proportions")
	flag.IntVar(&o.atOnce, "at-once", 16, "runs of a cluster at the same time")
	flag.BoolVar(&o.upgrade, "upgrade", false, "nodes of another build, with newer rules, take the place of the old ones, and an old one comes back")
	flag.StringVar(&o.younger, "troupe-younger", "", "its binary, with the tags chaos and younger; built when empty")
	flag.BoolVar(&o.keep, "keep", false, "keep the directory, with the output of the nodes and the events of the slowest run")
	brokerFlags(&o)
	flag.Parse()
	play := run
	if o.nodes > 0 {
		play = cluster
	}
	if o.look != "" {
		play = look
	}
	if o.rots > 0 && o.nodes == 0 {
		play = rotten
	}
	if o.absences > 0 {
		play = absent
	}
	if o.full == fullDisk && o.cycles > 0 {
		play = cycles
	}
	if o.power+o.shapes > 0 && o.nodes == 0 {
		play = dark
	}
	if o.power+o.shapes > 0 || o.full == fullDisk {
		play = own(play)
	}
	if err := play(o); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}
