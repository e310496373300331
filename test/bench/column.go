package main

import (
	"context"
	"errors"
	"fmt"
)

// store says where a column keeps what it must not lose.
type store string

// Stores. A column without a store of its own keeps nothing.
const (
	storeDefault store = ""       // as the column ships
	storeLazy    store = "lazy"   // survives the death of the process
	storeSynced  store = "synced" // survives the death of the machine
)

// setup is what a column needs to know of a workload.
type setup struct {
	script script
	url    string // of the model server; "": the model is in the process
	store  store
	dir    string // scratch directory of this measurement
	agents int    // that are live at the same time
	// waiting is called when a model call that never answers has begun.
	waiting func()
}

// runner runs agents of one column.
type runner interface {
	// run takes one agent, with its children, from its task to its answer.
	run(ctx context.Context) error
	close() error
}

// column is one way to run agents.
type column struct {
	name string
	what string
	open func(ctx context.Context, s setup) (runner, error)
	// supports reports whether the column can do a workload.
	supports func(w workload) bool
}

// Names of columns.
const (
	columnFloor   = "floor"
	columnEino    = "eino"
	columnEinoADK = "eino-adk"
	columnMemory  = "actors-memory"
	columnLogs    = "actors-jetstream"
	columnLocal   = "actors-local"
	columnEntry   = "entry"
	columnEntryJS = "entry-jetstream"
)

// columns are all columns, in the order of the table.
func columns() []column {
	return []column{
		{columnFloor, "goroutines, a map of tools and a loop; net/http and encoding/json", openFloor, func(w workload) bool { return !w.needsTroupe }},
		{columnEino, "cloudwego/eino, flow/agent/react: compiled once, then Generate or Stream", openEinoReact, isForMemoryPeers},
		{columnEinoADK, "cloudwego/eino, adk.ChatModelAgent with a Runner", openEinoADK, isForMemoryPeers},
		{columnMemory, "troupe: package actors, logs in memory", openActorsMemory, isForMemory},
		{columnLogs, "troupe: package actors, logs on an embedded JetStream", openActorsJetStream, func(w workload) bool { return !w.needsEntry }},
		{columnLocal, "troupe: package actors, logs in files of this machine", openActorsLocal, func(w workload) bool { return !w.needsEntry }},
		{columnEntry, "troupe: package troupe as a program embeds it", openEntry, func(workload) bool { return true }},
		{columnEntryJS, "the same with Config.LogStore \"jetstream\"", openEntryJetStream, func(w workload) bool { return w.shape != newProcess }},
	}
}

func isForMemory(w workload) bool { return w.store == storeDefault && !w.needsEntry }

func isForMemoryPeers(w workload) bool { return isForMemory(w) && !w.needsTroupe }

// errColumn: there is no such column.
var errColumn = errors.New("bench: unknown column")

func findColumn(name string) (column, error) {
	for _, c := range columns() {
		if c.name == name {
			return c, nil
		}
	}
	return column{}, fmt.Errorf("%w %q", errColumn, name)
}

// errAnswer: an agent did not end with the answer of its script.
var errAnswer = errors.New("bench: wrong answer")

// checkAnswer returns an error unless an agent gave the answer of its script.
func checkAnswer(text string) error {
	if text != answerText {
		return fmt.Errorf("%w %q", errAnswer, text)
	}
	return nil
}
