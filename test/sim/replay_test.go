package sim

import (
	"testing"

	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/mailbox"
)

// recordedSeeds is how many seeds TestSimulatedRunsReplay plays.
const recordedSeeds = 200

// seedEntries returns the entries of all logs of a seed, and whether it damaged one of them or wrote into
// one what no actor wrote.
func seedEntries(t *testing.T, seed int64) (entries []mailbox.Message, marred bool) {
	t.Helper()
	r := simulateSeed(seed, seedOptions{Record: true})
	if r.Err != nil {
		t.Error(r.Err)
	}
	for _, box := range r.Mailboxes {
		entries = append(entries, box.Entries...)
		marred = marred || box.Damaged || r.Faults&faultGarbage != 0
	}
	return entries, marred
}

// TestSimulatedRunsReplay: a replay of a simulated run with faults finds that this version decides what
// the logs record.
func TestSimulatedRunsReplay(t *testing.T) {
	t.Parallel()
	entries, compared := 0, 0
	for seed := int64(1); seed <= recordedSeeds; seed++ {
		log, marred := seedEntries(t, seed)
		r := replay.Logs(log, replay.Options{})
		entries += r.Entries
		compared += r.Messages + r.Answers
		if err := r.Err(); err != nil && !marred { // an agent may end before it reads the damage
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d runs, %d entries, %d decisions compared", recordedSeeds, entries, compared)
}
