package node

import (
	"flag"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// damageModes are what the agents of a run do when it is damaged (see damagedHost).
var damageModes = []string{live, "idle", "resumed"}

// damageSample chooses what the test of damaged runs tries. There are as many samples as
// modes. Each holds every kind of damage, in one of its modes; all together hold all
// pairs of a kind and a mode.
var damageSample = flag.String("host.damage", "", "sample of damaged runs: 0, 1, 2 or all (default: by the day)")

// sampledKinds returns the kinds that a sample holds in a mode.
func sampledKinds(sample, mode int) []damageKind {
	return slices.DeleteFunc(damageKinds(), func(k damageKind) bool {
		at := (k.turn + sample) % len(damageModes)
		if k.name == noLog && damageModes[at] == live {
			at++ // actors in memory without any log are known to nobody
		}
		return at != mode
	})
}

// chosenDamage returns for each mode the kinds of damage that -host.damage asks for, and
// the value that asks for them again.
func chosenDamage(t *testing.T) (kinds [][]damageKind, again string) {
	t.Helper()
	again = *damageSample
	if again == "" {
		again = strconv.Itoa(time.Now().YearDay() % len(damageModes))
	}
	kinds = make([][]damageKind, len(damageModes))
	for sample := range damageModes {
		for mode := range damageModes {
			if again == "all" || again == strconv.Itoa(sample) {
				kinds[mode] = append(kinds[mode], sampledKinds(sample, mode)...)
			}
		}
	}
	if len(slices.Concat(kinds...)) == 0 {
		t.Fatalf("-host.damage is %q: 0, 1, 2 or all", again)
	}
	return kinds, again
}

// TestDamageSamplesHoldEveryKind: a sample leaves no kind of damage out, and all samples
// together leave no pair of a kind and a mode out.
func TestDamageSamplesHoldEveryKind(t *testing.T) {
	t.Parallel()
	pairs := map[string]bool{}
	for sample := range damageModes {
		names, ways := map[string]int{}, map[string]bool{}
		for mode := range damageModes {
			for _, k := range sampledKinds(sample, mode) {
				names[k.name]++
				pairs[k.name+" "+damageModes[mode]] = true
				for _, way := range logChanges {
					if strings.HasSuffix(k.name, " "+way.name) {
						ways[way.name+" "+damageModes[mode]] = true
					}
				}
			}
		}
		if len(names) != len(damageKinds()) || len(ways) != len(logChanges)*len(damageModes) {
			t.Errorf("sample %d has %d kinds of %d, and %d ways in a mode: %v", sample, len(names), len(damageKinds()), len(ways), ways)
		}
	}
	if want := len(damageKinds())*len(damageModes) - 1; len(pairs) != want { // without a log nothing is live
		t.Errorf("the samples have %d pairs of %d", len(pairs), want)
	}
}
