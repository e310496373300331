package sim

import (
	"flag"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

var verifySeeds = flag.Int64("verify.seeds", recordedSeeds, "simulated runs without damage whose logs TestSimulatedRunsKeepTheRules verifies")

// blamedSeeds are seeds in which the verification once found what is none: the log holds a reply twice, because it was sent
// again (235); a summary is made within a turn (303); a reply has more calls than an entry holds (34, 107); a call that was
// about to begin did not, because of a message that took effect at once (1734).
var blamedSeeds = []int64{235, 303, 34, 107, 1734}

// verifyParts is how many goroutines verify seeds.
const verifyParts = 4

// TestSimulatedRunsKeepTheRules: a verification that shares nothing with the machines finds no broken rule in
// the logs of simulated runs with crashes, takeovers, forged entries and repeated messages, and the sums that it finds
// are those of the supervisor. Seeds are played until that many without damage were judged. A forged entry may be found, and nothing else may. Of a run whose logs were
// damaged, the other logs are judged by the rules that concern one log.
func TestSimulatedRunsKeepTheRules(t *testing.T) {
	t.Parallel()
	for _, seed := range blamedSeeds {
		if !verifySeed(t, seed, new(verifiedSeeds)) {
			t.Errorf("seed %d was damaged", seed)
		}
	}
	var sum verifiedSeeds
	t.Run("seeds", func(t *testing.T) {
		for part := range int64(verifyParts) {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed, judged := part+1, int64(0); judged < *verifySeeds/verifyParts; seed += verifyParts {
					if verifySeed(t, seed, &sum) {
						judged++
					}
				}
			})
		}
	})
	t.Logf("%d runs judged, %d entries, %d forged entries found; and %d runs with damaged logs, and %d forks", sum.judged.Load(), sum.entries.Load(), sum.forged.Load(), sum.damaged.Load(), sum.forks.Load())
}

type verifiedSeeds struct{ judged, damaged, entries, forged, forks atomic.Int64 }

// compareSums compares the sums that the logs show with those of the supervisor, which they must equal.
func compareSums(t *testing.T, run seedResult, got verify.Sums) {
	t.Helper()
	pool := run.Super.Pool
	spent := budget.Amount{Tokens: got.Settled.Tokens, Nano: got.Settled.Nano, Calls: got.Settled.Calls}
	over := budget.Amount{Tokens: got.Overrun.Tokens, Nano: got.Overrun.Nano}
	limits := got.Limit.Tokens == pool.Limit.Tokens && got.Limit.Nano == pool.Limit.Nano || run.Super.Run.Run == "" // canceled before it began
	if spent != pool.Spent || over != pool.Overrun || got.Held.Tokens != pool.Held.Tokens || !limits {
		t.Errorf("seed %d: the logs show %+v, and the supervisor has %+v", run.Seed, got, pool)
	}
}

// ofOneLog are the rules that concern one log alone, whatever was lost of another one.
var ofOneLog = []verify.Rule{verify.Readable, verify.Head, verify.Chain, verify.Floor, verify.Claimed, verify.OneActing, verify.OwnID, verify.StartedOnce}

// verifySeed verifies the logs of a seed, and reports whether none of them was damaged.
func verifySeed(t *testing.T, seed int64, sum *verifiedSeeds) bool {
	t.Helper()
	run := simulateSeed(seed, seedOptions{Record: true})
	if run.Err != nil {
		t.Error(run.Err)
	}
	if run.Fork != nil {
		sum.forks.Add(1)
		verifyBoxes(t, *run.Fork, new(verifiedSeeds))
	}
	return verifyBoxes(t, run, sum)
}

// verifyBoxes verifies the logs of a run.
func verifyBoxes(t *testing.T, run seedResult, sum *verifiedSeeds) bool {
	t.Helper()
	var entries []mailbox.Message
	damaged := map[mailbox.Address]bool{}
	logs := map[mailbox.Address]actorLog{}
	for _, box := range run.Mailboxes {
		entries, logs[box.At] = append(entries, box.Entries...), box
		if box.Damaged {
			damaged[box.At] = true
		}
	}
	r := verify.Logs(entries)
	whole := len(damaged) == 0 && !r.Damaged
	for _, f := range r.Findings {
		box := logs[f.Log]
		switch {
		case box.Forged[string(box.Entries[f.Entry-1].Data)]:
			sum.forged.Add(1)
		case !whole && (damaged[f.Log] || !slices.Contains(ofOneLog, f.Rule)):
		default:
			t.Errorf("seed %d: %s", run.Seed, f)
		}
	}
	if whole {
		compareSums(t, run, r.Sums)
	}
	sum.entries.Add(int64(r.Entries))
	if whole {
		sum.judged.Add(1)
	} else {
		sum.damaged.Add(1)
	}
	return whole
}
