package main

import (
	"errors"
	"fmt"
)

// shape is how a workload starts its agents.
type shape int

// Shapes.
const (
	oneAfterAnother shape = iota // again and again for the duration
	allAtOnce                    // batches of agents, at least one batch and at least for the duration
	allWaiting                   // agents that wait for their model: their memory
	allFinished                  // runs that have ended: what the next node on their directory does
	allParked                    // runs that wait for a person: their memory
	newProcess                   // a process that runs one agent: the time until it calls its model
)

// workload is the same work for every column.
type workload struct {
	name   string
	what   string
	script string
	shape  shape
	agents int // at the same time
	turns  int // model calls of one agent, for the figures per turn
	// batches is how often the agents run at least, whatever the duration: what a node does in
	// the background must not count as theirs.
	batches int
	http    bool
	store   store
	// long workloads are measured only if they are named.
	long bool
	// needsTroupe is for what only troupe has, needsEntry for what only its entry point has.
	needsTroupe, needsEntry bool
	figures                 []figure
}

// figure names what is measured, with its unit.
type figure string

// Figures. All but turnsPerSecond are better if they are smaller.
const (
	wallPerTurn    figure = "µs/turn"
	cpuPerTurn     figure = "CPU µs/turn"
	allocsPerTurn  figure = "allocs/turn"
	bytesPerTurn   figure = "B/turn"
	wallTotal      figure = "wall ms"
	cpuTotal       figure = "CPU ms"
	addedRSS       figure = "added RSS MB" // at its peak, above that of the process before it opened the column
	turnsPerSecond figure = "turns/s"
	wallPerChild   figure = "µs/child"
	cpuPerChild    figure = "CPU µs/child"
	allocsPerChild figure = "allocs/child"
	heapPerAgent   figure = "heap KB/agent"
	rssPerAgent    figure = "RSS KB/agent"
)

// Sizes of the workloads.
const (
	turnsOfOne     = 100
	turnsOfMany    = 10
	agentsOfFew    = 100
	agentsOfMany   = 1000
	childrenOfOne  = 64
	waitingSome    = 100
	waitingFew     = 1000
	waitingMany    = 10_000
	waitingExtreme = 100_000
	finishedFew    = 1000
	finishedMany   = 10_000
)

// workloads are all workloads, in the order of the table.
func workloads() []workload {
	perTurn := []figure{wallPerTurn, cpuPerTurn, allocsPerTurn, bytesPerTurn}
	batch := []figure{wallTotal, cpuTotal, allocsPerTurn, addedRSS}
	memory := []figure{heapPerAgent, rssPerAgent}
	durable := []figure{turnsPerSecond, cpuPerTurn}
	growing := []figure{wallPerTurn, cpuPerTurn, bytesPerTurn}
	return []workload{
		{name: "one", what: "one agent, 100 turns, model in the process", script: "look-100", agents: 1, turns: turnsOfOne, figures: perTurn},
		{name: "hundred", what: "100 agents of 10 turns, model in the process", script: "look-10", shape: allAtOnce, agents: agentsOfFew, turns: turnsOfMany, figures: batch},
		{name: "thousand", what: "1,000 agents of 10 turns, model in the process", script: "look-10", shape: allAtOnce, agents: agentsOfMany, turns: turnsOfMany, figures: batch},
		{name: "one-http", what: "one agent, 100 turns, model over HTTP", script: "look-100", agents: 1, turns: turnsOfOne, http: true, figures: perTurn},
		{name: "thousand-http", what: "1,000 agents of 10 turns, model over HTTP, 20 ms a reply", script: "look-10-20ms", shape: allAtOnce,
			agents: agentsOfMany, turns: turnsOfMany, http: true, figures: batch},
		{name: "fan-out", what: "one agent delegates to 64 that answer at once", script: "fan-64", agents: 1, turns: childrenOfOne,
			figures: []figure{wallPerChild, cpuPerChild, allocsPerChild}},
		{name: "start", what: "a run of one turn, from its task to its answer", script: "look-1", agents: 1, turns: 1, batches: 20, figures: perTurn},
		{name: "waiting-100", what: "100 agents wait for their model", script: scriptWait, shape: allWaiting, agents: waitingSome, figures: memory},
		{name: "waiting-1k", what: "1,000 agents wait for their model", script: scriptWait, shape: allWaiting, agents: waitingFew, figures: memory},
		{name: "waiting-10k", what: "10,000 agents wait for their model", script: scriptWait, shape: allWaiting, agents: waitingMany, long: true, figures: memory},
		{name: "durable-one", what: "one agent, 100 turns, kept in files (floor) or logs that are synced every two minutes", script: "look-100", agents: 1, turns: turnsOfOne,
			store: storeLazy, figures: durable},
		{name: "durable-thousand", what: "1,000 agents of 10 turns, kept likewise", script: "look-10", shape: allAtOnce, agents: agentsOfMany, turns: turnsOfMany,
			store: storeLazy, figures: durable},
		{name: "synced-one", what: "one agent, 100 turns, each message or entry synced before the next step", script: "look-100", agents: 1, turns: turnsOfOne,
			store: storeSynced, figures: durable},
		{name: "synced-thousand", what: "1,000 agents of 10 turns, synced likewise", script: "look-10", shape: allAtOnce, agents: agentsOfMany, turns: turnsOfMany,
			store: storeSynced, figures: durable},
		{name: "turns-10", what: "one agent, 10 turns", script: "look-10", agents: 1, turns: 10, figures: growing},
		{name: "turns-200", what: "one agent, 200 turns", script: "look-200", agents: 1, turns: 200, figures: growing},
		{name: "turns-2000", what: "one agent, 2,000 turns", script: "look-2000", agents: 1, turns: 2000, figures: growing},
		{name: "finished-1k", what: "a node on a directory with 1,000 finished runs", script: "look-1", shape: allFinished, agents: finishedFew,
			needsTroupe: true, needsEntry: true, figures: []figure{nodeStart, listRuns}},
		{name: "finished-10k", what: "a node on a directory with 10,000 finished runs", script: "look-1", shape: allFinished, agents: finishedMany, long: true,
			needsTroupe: true, needsEntry: true, figures: []figure{nodeStart, listRuns}},
		{name: "parked-1k", what: "1,000 runs wait for a person", script: scriptAsk, shape: allParked, agents: finishedFew, long: true,
			needsTroupe: true, needsEntry: true, figures: []figure{heapPerRun}},
		{name: "first-request", what: "a new process; the entry point is the program troupe run", script: onceScript, shape: newProcess, agents: 1,
			figures: []figure{firstRequest}},
		{name: "waiting-100k", what: "100,000 agents wait for their model", script: scriptWait, shape: allWaiting, agents: waitingExtreme, long: true, figures: memory},
	}
}

// errWorkload: there is no such workload.
var errWorkload = errors.New("bench: unknown workload")

func findWorkload(name string) (workload, error) {
	for _, w := range workloads() {
		if w.name == name {
			return w, nil
		}
	}
	return workload{}, fmt.Errorf("%w %q", errWorkload, name)
}
