package runfile_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
)

// agentsOf are the agents of a run.
func agentsOf(entries []mailbox.Message) (ids []string) {
	for _, m := range entries {
		if id := m.To.Agent(); id != mailbox.Super && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestForkIsCutAtAStateOfTheRun: at each turn of each agent the cut is a state that the run could have been in. The log of
// the agent ends with the turn, and nothing in the cut is an effect of its last entry.
//
//behaviour:shows D6
func TestForkIsCutAtAStateOfTheRun(t *testing.T) {
	t.Parallel()
	cuts := 0
	for name, f := range readRecorded(t) {
		if inconsistent(f.Entries) != "" {
			continue
		}
		for _, id := range agentsOf(f.Entries) {
			for turn := 0; ; turn++ {
				cut, err := runfile.CutFork(f.Entries, id, strconv.Itoa(turn))
				if err != nil {
					if !strings.Contains(err.Error(), "its complete turns are 0 to "+strconv.Itoa(turn-1)) {
						t.Errorf("%s: %s:%d: %v", name, id, turn, err)
					}
					break
				}
				cuts++
				if why := inconsistent(cut); why != "" {
					t.Errorf("%s: %s:%d: %s", name, id, turn, why)
				}
				checkNothingFollows(t, cut, id)
			}
		}
	}
	if cuts < 100 {
		t.Errorf("%d cuts: the test shows little", cuts)
	}
}

// checkNothingFollows fails if a log holds a message that the last entry of an agent has caused.
func checkNothingFollows(t *testing.T, cut []mailbox.Message, id string) {
	t.Helper()
	last := uint64(0)
	for _, m := range cut {
		if m.To.Agent() == id {
			last++
		}
	}
	for _, m := range cut {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range e.Items {
			if e.From.Agent() == id && m.To.Agent() != id && item.N >= last {
				t.Errorf("%s holds an effect of entry %d of %s, where the fork is", m.To, item.N, id)
			}
		}
	}
}

// TestForkPointsThatDoNotExist: a point that the logs do not have is refused with what there is.
func TestForkPointsThatDoNotExist(t *testing.T) {
	t.Parallel()
	for name, f := range readRecorded(t) {
		for _, p := range [][2]string{{"root", "-1"}, {"root", "999999999999999999999"}, {"root", "77"}, {"root", "77-0"}, {"root", "77-0.1"}, {"root", ""}, {"root", "-"},
			{"root", "x"}, {"super", "0"}, {"root-9-9", "0"}, {"", "0"}, {"root.x", "0"}, {"root@gpu", "0"}, {"*", "0"}, {"root", "1-0.1.2"}} {
			if cut, err := runfile.CutFork(f.Entries, p[0], p[1]); err == nil {
				t.Errorf("%s: %q is cut: %d entries", name, p, len(cut))
			}
		}
	}
	if _, err := runfile.CutFork(nil, "root", "0"); err == nil {
		t.Error("no logs are cut")
	}
}
