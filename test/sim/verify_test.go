package sim

import (
	"flag"
	"testing"

	"github.com/troupe-run/troupe/internal/verify"
)

var verifySeeds = flag.Int64("verify.seeds", recordedSeeds, "seeds whose logs TestSimulatedRunsKeepTheRules verifies")

// TestSimulatedRunsKeepTheRules: a verification that shares nothing with the machines finds no broken rule in
// the logs of simulated runs with crashes, forged entries and repeated messages.
func TestSimulatedRunsKeepTheRules(t *testing.T) {
	t.Parallel()
	entries, marredRuns := 0, 0
	for seed := int64(1); seed <= *verifySeeds; seed++ {
		log, marred := seedEntries(t, seed)
		r := verify.Logs(log)
		entries += r.Entries
		if marred || r.Damaged {
			marredRuns++
			continue
		}
		for _, f := range r.Findings {
			t.Errorf("seed %d: %s", seed, f)
		}
	}
	t.Logf("%d runs, %d entries; %d runs with damaged logs or forged entries were not judged", *verifySeeds, entries, marredRuns)
}
