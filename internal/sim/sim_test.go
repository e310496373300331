package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	flagSeeds = flag.Int("sim.seeds", 2000, "how many seeds to play")
	flagFrom  = flag.Int64("sim.from", 1, "the first seed")
	flagSeed  = flag.Int64("sim.seed", 0, "the one seed of TestSeed")
	flagReach = flag.Bool("sim.reach", true, "fail when a place was never reached")
	flagFault = flag.Int64("sim.faults", -1, "kinds of faults of TestSeed, as bits, instead of the seed's own")
)

func TestSeeds(t *testing.T) {
	begin := time.Now()
	var reach Reach
	var mu sync.Mutex
	var steps, agents, wide, next atomic.Int64
	var failed atomic.Bool
	next.Store(*flagFrom)
	end := *flagFrom + int64(*flagSeeds)
	var first Result
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			var mine Reach
			for !failed.Load() {
				seed := next.Add(1) - 1
				if seed >= end {
					break
				}
				r := Run(seed, Options{})
				mine.Add(&r.Reach)
				steps.Add(int64(r.Steps))
				agents.Add(int64(r.Agents))
				if r.Agents >= 3 {
					wide.Add(1)
				}
				if r.Err != nil {
					mu.Lock()
					if first.Err == nil || r.Seed < first.Seed {
						first = r
					}
					mu.Unlock()
					failed.Store(true)
				}
			}
			mu.Lock()
			reach.Add(&mine)
			mu.Unlock()
		}()
	}
	wait.Wait()
	if first.Err != nil {
		report(t, first)
		return
	}
	took := time.Since(begin)
	n := int64(*flagSeeds)
	t.Logf("%d seeds in %v: %.0f seeds/s, %d steps/seed, %.1f agents/seed, %d%% with 3 agents or more", n, took.Round(time.Millisecond),
		float64(n)/took.Seconds(), steps.Load()/n, float64(agents.Load())/float64(n), wide.Load()*100/n)
	for p := range reach {
		t.Logf("%8d %s", reach[p], Place(p))
	}
	if missing := reach.Missing(); *flagReach && len(missing) > 0 {
		t.Errorf("never reached: %s", strings.Join(missing, "; "))
	}
}

func report(t *testing.T, r Result) {
	t.Helper()
	r = Run(r.Seed, Options{Trace: true})
	head := fmt.Sprintf("seed %d\nfaults %s\nerror %v\n", r.Seed, r.Faults, r.Err)
	name := filepath.Join(os.TempDir(), fmt.Sprintf("sim-%d.txt", r.Seed))
	if err := os.WriteFile(name, []byte(head+strings.Join(r.Script, "\n")+"\n"), 0o644); err != nil {
		t.Error(err)
	}
	t.Errorf("%v\nfaults: %s\nscript: %s\nagain: go test ./internal/sim -run TestSeed$ -sim.seed=%d -v", r.Err, r.Faults, name, r.Seed)
}

func TestSeed(t *testing.T) {
	if *flagSeed == 0 {
		return
	}
	o := Options{Trace: true}
	if *flagFault >= 0 {
		f := Fault(*flagFault)
		o.Faults = &f
	}
	r := Run(*flagSeed, o)
	t.Logf("faults %s", r.Faults)
	for _, line := range r.Script {
		t.Log(line)
	}
	if r.Err != nil {
		t.Error(r.Err)
	}
}
