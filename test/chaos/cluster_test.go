//go:build e2e

package main

import (
	"testing"
	"time"
)

// TestKillsStopsDrainsAndCancels: three real nodes share some runs while nodes are killed,
// frozen and stopped in order. `make cluster` is the long form of it.
//
//behaviour:shows F1 F2 F7
func TestKillsStopsDrainsAndCancels(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	o := options{nodes: 3, runs: 20, kills: 2, stops: 1, drains: 2, points: 3, zombies: 1, cancels: 20, turns: 6, atOnce: 8, ttl: 3 * time.Second, seed: seed, slack: time.Minute}
	if err := runCluster(o); err != nil {
		t.Error(err)
	}
}

// TestPlannedStopsLoseNothing: no effect and no model call is made again,
// nobody is asked, and nothing is charged for nothing.
//
//behaviour:shows F2
func TestPlannedStopsLoseNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	o := options{nodes: 3, runs: 20, drains: 6, turns: 6, atOnce: 8, ttl: 20 * time.Second, gap: time.Second, seed: seed, slack: time.Minute}
	if err := runCluster(o); err != nil {
		t.Error(err)
	}
}

// TestTheLedgerSeesDoubles: a tool that is wrongly declared idempotent runs
// again, and the judge finds that.
//
//behaviour:shows F1
func TestTheLedgerSeesDoubles(t *testing.T) {
	o := options{nodes: 3, runs: 20, kills: 3, turns: 6, atOnce: 12, ttl: 2 * time.Second, seed: 1, slack: time.Minute, control: true}
	if err := runCluster(o); err != nil {
		t.Error(err)
	}
}

// TestStreamLeaderIsKilled: three real NATS servers by the files of deploy/, and twice
// the one that leads a stream is killed: nothing that was acknowledged is lost,
// and no node takes that for the death of another. `make brokers` is the long form.
func TestStreamLeaderIsKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	o := options{nodes: 3, runs: 10, turns: 6, atOnce: 4, ttl: 20 * time.Second, seed: seed, servers: 3, leaders: 2, every: 10 * time.Second}
	if err := runCluster(o); err != nil {
		t.Error(err)
	}
}

// TestNetworkPartitions: a node is cut off, made deaf, made mute, joined and cut in
// turn, cut from one server, and then a server from the others: no tool is begun
// by who is cut off, none twice, and every run ends. `make partitions` is the long form.
func TestNetworkPartitions(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	o := options{nodes: 3, runs: 20, turns: 6, atOnce: 10, ttl: 5 * time.Second, seed: seed, servers: 3, cuts: len(cutKinds), every: 5 * time.Second}
	if err := runCluster(o); err != nil {
		t.Error(err)
	}
}

// TestStreamsAreFull: the streams of the logs reach their limit while runs go on,
// and get more room later. Until then nothing begins, and every run ends as if
// nothing had been. `make full` also fills the disk beneath the server.
//
//behaviour:shows F3
func TestStreamsAreFull(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	o := options{nodes: 3, runs: 12, turns: 6, atOnce: 4, ttl: 5 * time.Second, seed: seed, full: fullStreams}
	if err := runCluster(o); err != nil {
		t.Error(err)
	}
}
