package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// Logs that are made up here: a judge that finds nothing in what is wrong would
// find nothing in what is played either.

const (
	root = mailbox.Address("r.root")
	key  = "r.root.1-0"
)

type line struct {
	from       mailbox.Address
	lease      uint64
	life, kind string
	n          uint64
	body       any
}

func made(t *testing.T, lines ...line) *replayedRun {
	t.Helper()
	f := newReplayed("r")
	said := map[string]mailbox.Item{}
	lines = append([]line{{from: mailbox.At("r", mailbox.Super), kind: "submitted", n: 1, body: agent.Submitted{}}}, lines...) // what woke it
	for i, l := range lines {
		raw, err := mailbox.Marshal(l.body)
		if err != nil {
			t.Fatal(err)
		}
		data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: l.from, Epoch: mailbox.Epoch{Lease: l.lease, Start: 1}, Start: l.life,
			Items: []mailbox.Item{{ID: l.life + l.kind, N: l.n, Kind: l.kind, Body: raw}}})
		if err != nil {
			t.Fatal(err)
		}
		f.logs[root] = append(f.logs[root], mailbox.Message{To: root, Place: uint64(i + 1), At: int64(i), Data: data})
	}
	f.checkAgreement(root, said)
	f.replayLog(root)
	return f
}

func mine(lease uint64, life, kind string, body any) line {
	return line{from: root, lease: lease, life: life, kind: kind, body: body}
}

// TestJudgeFindsTheActivationThatBeganACall: a Started counts while the life that wrote it is
// in force, and unless that life released it.
//
//behaviour:shows F7
func TestJudgeFindsTheActivationThatBeganACall(t *testing.T) {
	started := func(life string) agent.Started { return agent.Started{Call: "1-0", Attempt: 1, Activation: life} }
	f := made(t,
		mine(1, "a", "resumed", agent.Resumed{Activation: "a", Node: "n1"}), mine(1, "a", "started", started("a")),
		mine(2, "b", "resumed", agent.Resumed{Activation: "b", Node: "n2"}), mine(2, "b", "started", started("b")), mine(2, "b", "released", agent.Released{}),
		mine(1, "a", "checkpoint", agent.Checkpoint{}), mine(1, "a", "returned", agent.Returned{Call: "1-0", Attempt: 1, Text: "late"}))
	if got := f.countBegun(key); got != 1 {
		t.Errorf("the call may have been begun %d times, want 1: the second life released it", got)
	}
	if late := f.late["r.root a"]; !slices.Contains(late, "1-0") {
		t.Errorf("what the first life's call returned is not told as evidence: %v", f.late)
	}
	if f.stale["checkpoint"] != 1 || f.stale["returned"] != 1 {
		t.Errorf("entries of superseded activations: %v", f.stale)
	}
	if len(f.claims["r.root"]) != 2 || f.claims["r.root"][1].node != "n2" {
		t.Errorf("lives that came into force: %v", f.claims)
	}
	if len(f.problems) > 0 {
		t.Errorf("problems where there are none: %v", f.problems)
	}
}

// TestJudgeFindsDifferentMessagesWithOneIdentity: two activations of a sender that send different messages
// under one identity have both decided.
//
//behaviour:shows F7
func TestJudgeFindsDifferentMessagesWithOneIdentity(t *testing.T) {
	say := func(output int64) line {
		return line{from: "r.super", kind: "granted", n: 4, body: agent.Granted{Reservation: 1, Output: output}}
	}
	if f := made(t, say(100), say(100)); len(f.problems) > 0 {
		t.Errorf("the same message, sent again, is a problem: %v", f.problems)
	}
	f := made(t, say(100), say(200))
	if len(f.problems) != 1 || !strings.Contains(f.problems[0], "in two ways") {
		t.Errorf("two messages under one identity are no problem: %v", f.problems)
	}
}
