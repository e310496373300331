package client

// RunState is what a run does at the moment, as lists show it.
type RunState string

// States of a run.
const (
	RunLive        RunState = "live"        // its agents work
	RunQueued      RunState = "queued"      // it is in its log, and waits until fewer runs are live
	RunParked      RunState = "parked"      // it waits for a person
	RunFinished    RunState = "finished"    // its result is final
	RunInterrupted RunState = "interrupted" // it has not ended, and no node is there that could continue it
)
