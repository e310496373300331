package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
)

// Flags of the tests; doc.go shows how they are used.
var (
	flagSeeds  = flag.Int("sim.seeds", 300, "how many seeds to play; from 2000 on each place must have been reached")
	flagFrom   = flag.Int64("sim.from", 1, "the first seed")
	flagSeed   = flag.Int64("sim.seed", 1, "the seed of TestSeed")
	flagAny    = flag.Int64("sim.any", 60, "how many seeds TestAnySeeds plays")
	flagReach  = flag.Bool("sim.reach", true, "fail when a place was never reached")
	flagFaults = flag.Int64("sim.faults", -1, "kinds of faults of TestSeed, as bits, instead of the seed's own choice")
	flagScript = flag.String("sim.script", "", "a script for TestSeed to play again")
	flagTwice  = flag.Int64("sim.twice", 20, "how many seeds TestSeedsRepeat plays twice")
)

// What a suite must be worth.
const (
	stepsMean = 200 // steps of a seed, on average
	placesMin = 2000
	// placesShort is the share of the places, in percent, that fewer seeds must reach.
	placesShort    = 90
	placesShortMin = 200
)

// gcPercent: a run makes much garbage and keeps nothing.
const gcPercent = 800

func TestMain(m *testing.M) {
	debug.SetGCPercent(gcPercent)
	os.Exit(m.Run())
}

// suite sums up what the seeds of a test came to.
type suite struct {
	mu     sync.Mutex
	reach  reachCounts
	steps  int
	agents int
	draws  int
	fewest int // agents of a seed
	first  seedResult
	failed atomic.Bool
}

func (s *suite) add(r seedResult, draws int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reach.add(&r.Reach)
	s.steps += r.Steps
	s.agents += r.Begun
	s.draws += draws
	if s.fewest == 0 || r.Begun < s.fewest {
		s.fewest = r.Begun
	}
	if r.Err != nil {
		if s.first.Err == nil || r.Seed < s.first.Seed {
			s.first = r
		}
		s.failed.Store(true)
	}
}

// playSeeds plays seeds on all cores until one fails.
func playSeeds(from, count int64, play func(seed int64, o seedOptions) (seedResult, int)) *suite {
	all := &suite{}
	var next atomic.Int64
	next.Store(from)
	end := from + count
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for !all.failed.Load() {
				seed := next.Add(1) - 1
				if seed >= end {
					return
				}
				all.add(play(seed, seedOptions{}))
			}
		})
	}
	wait.Wait()
	return all
}

// TestSeeds plays teams of at least three agents.
//
//behaviour:shows F1 F7
func TestSeeds(t *testing.T) {
	begin := time.Now()
	all := playSeeds(*flagFrom, int64(*flagSeeds), playTeam)
	if all.first.Err != nil {
		report(t, all.first)
		return
	}
	took, n := time.Since(begin), *flagSeeds
	t.Logf("%d seeds in %v: %.0f seeds/s, %d steps/seed, %.1f agents/seed, at least %d, %.2f draws/seed", n, took.Round(time.Millisecond),
		float64(n)/took.Seconds(), all.steps/n, float64(all.agents)/float64(n), all.fewest, float64(all.draws)/float64(n))
	if all.fewest < teamAgents {
		t.Errorf("a seed has %d agents after %d draws", all.fewest, drawsMax)
	}
	for p, count := range all.reach {
		t.Logf("%8d %s", count, place(p))
	}
	if !*flagReach || n < placesShortMin {
		return
	}
	missing := reachOthers(t, &all.reach, n)
	if missesTooMany(missing, n) {
		t.Errorf("never reached: %s", strings.Join(missing, "; "))
	}
	if all.steps/n < stepsMean {
		t.Errorf("%d steps a seed, at least %d make a suite", all.steps/n, stepsMean)
	}
}

// reachOthers returns the places that teams did not reach and other runs do not reach either: a root that forms a team hands
// nothing off first. It plays as many seeds at most, and only as long as too many places are missing.
func reachOthers(t *testing.T, reach *reachCounts, n int) (missing []string) {
	t.Helper()
	for played := 0; ; played += placesShortMin {
		missing = reach.missing(n)
		if played >= n || !missesTooMany(missing, n) {
			return missing
		}
		others := playSeeds(*flagFrom+int64(played), placesShortMin, playAny)
		if others.first.Err != nil {
			report(t, others.first)
			return nil
		}
		reach.add(&others.reach)
	}
}

// missesTooMany reports whether a suite of n seeds has missed more places than it may.
func missesTooMany(missing []string, n int) bool {
	return n >= placesMin && len(missing) > 0 || 100*len(missing) > (100-placesShort)*len(reachCounts{})
}

// playAny plays a seed with any number of agents.
func playAny(seed int64, o seedOptions) (seedResult, int) { return simulateSeed(seed, o), 1 }

// TestAnySeeds plays seeds with any number of agents, one as well.
func TestAnySeeds(t *testing.T) {
	all := playSeeds(*flagFrom, *flagAny, playAny)
	if all.first.Err != nil {
		report(t, all.first)
	} else if all.fewest > 1 {
		t.Errorf("each run had %d agents or more", all.fewest)
	}
}

// report leaves the script of a failed seed and says how to play it again.
func report(t *testing.T, failed seedResult) {
	t.Helper()
	r := simulateSeed(failed.Seed, seedOptions{Trace: true})
	name := filepath.Join(os.TempDir(), fmt.Sprintf("sim-%d.txt", r.Seed))
	if err := os.WriteFile(name, []byte(script(r)), 0o644); err != nil {
		t.Error(err)
	}
	least := shrink(r)
	t.Errorf("%v\nfaults: %s\nfails with %s too (-sim.faults=%d)\nscript: %s\nagain: go test ./test/sim -run 'TestSeed$' -sim.seed=%d -v",
		r.Err, r.Faults, least, int64(least), name, r.Seed)
}

// shrink switches kinds of faults off as long as the seed still fails.
func shrink(r seedResult) faultSet {
	least := r.Faults
	for i := range faultNames {
		fewer := least &^ (1 << i)
		if fewer != least && simulateSeed(r.Seed, seedOptions{Faults: &fewer}).Err != nil {
			least = fewer
		}
	}
	return least
}

// script is a run as a text: a head, and a line for each thing that happened.
func script(r seedResult) string {
	head := fmt.Sprintf("seed %d\nfaults %d %s\n", r.Seed, int64(r.Faults), r.Faults)
	if r.Err != nil {
		head += "error " + strings.ReplaceAll(r.Err.Error(), "\n", " ") + "\n"
	}
	return head + "\n" + strings.Join(r.Script, "\n") + "\n"
}

// TestSeed plays one seed step by step, or the script of one.
func TestSeed(t *testing.T) {
	seed, faults, lines := *flagSeed, *flagFaults, []string(nil)
	if *flagScript != "" {
		seed, faults, lines = load(t, *flagScript)
	}
	o := seedOptions{Trace: true}
	if faults >= 0 {
		f := faultSet(faults)
		o.Faults = &f
	}
	r := simulateSeed(seed, o)
	t.Logf("faults %s", r.Faults)
	for i, line := range r.Script {
		t.Log(line)
		if lines != nil && (i >= len(lines) || lines[i] != line) {
			t.Fatalf("line %d of the script was %q: the program does something else now", i+1, slices.Concat(lines, []string{""})[min(i, len(lines))])
		}
	}
	if r.Err != nil {
		t.Error(r.Err)
	}
}

// load reads a script.
func load(t *testing.T, name string) (seed, faults int64, lines []string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, body, ok := strings.Cut(string(data), "\n\n")
	seed, faults = -1, -1
	for line := range strings.Lines(head) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, _, _ := strings.Cut(rest, " ")
		switch word {
		case "seed":
			seed, err = strconv.ParseInt(number, 10, 64)
		case "faults":
			faults, err = strconv.ParseInt(number, 10, 64)
		}
	}
	if !ok || err != nil || seed < 0 || faults < 0 {
		t.Fatalf("%s is not a script of the simulator", name)
	}
	return seed, faults, strings.Split(strings.TrimSuffix(body, "\n"), "\n")
}

// TestEveryTransitionAndStopReasonHasAPlace: every transition and every stop reason has a place.
func TestEveryTransitionAndStopReasonHasAPlace(t *testing.T) {
	if len(spec.Transitions()) != transitionsMax || len(spec.Reasons()) != reasonsMax {
		t.Fatalf("%d transitions and %d reasons, counted %d and %d", len(spec.Transitions()), len(spec.Reasons()), transitionsMax, reasonsMax)
	}
	for i := range (reachCounts{}) {
		if place(i).String() == "" {
			t.Errorf("place %d has no name", i)
		}
	}
}

// TestSeedsRepeat: a seed does the same each time, and so does its script.
func TestSeedsRepeat(t *testing.T) {
	seeds := *flagTwice
	for seed := int64(1); seed <= seeds; seed++ {
		a := simulateSeed(seed, seedOptions{Trace: true})
		b := simulateSeed(seed, seedOptions{Trace: true, Faults: &a.Faults})
		if !slices.Equal(a.Script, b.Script) {
			t.Fatalf("seed %d does two different things", seed)
		}
	}
	r := simulateSeed(seeds, seedOptions{Trace: true})
	name := filepath.Join(t.TempDir(), "script.txt")
	if err := os.WriteFile(name, []byte(script(r)), 0o600); err != nil {
		t.Fatal(err)
	}
	seed, faults, lines := load(t, name)
	if seed != seeds || faultSet(faults) != r.Faults || !slices.Equal(lines, r.Script) {
		t.Fatal("a script does not read back")
	}
}
