package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/test/golden"
	"github.com/troupe-run/troupe/mailbox"
)

// flagEvents shows what a hash stands for: the events of the seed that -sim.seed names.
var flagEvents = flag.String("sim.events", "", "a file into which TestEventsOfSeeds writes the events of -sim.seed")

// eventSeeds is how many seeds have their events on record.
const eventSeeds = 300

// TestEventsOfSeeds compares the events of every log that the seeds leave behind
// with testdata/events.txt: a hash and a count for each seed, and how often each kind
// was told. Whatever makes the events of a step must make these.
//
// A hash is of the events as JSON, in the order of the logs, so it is the same on every
// machine. To see the events of a seed, and what another way makes of it:
//
//	go test ./test/sim -run TestEventsOfSeeds -sim.seed=7 -sim.events=/tmp/before.jsonl
//
// A change of the simulator or of a machine changes the logs, and so the hashes: then
// -update records them anew. A change of only how events are made must not.
func TestEventsOfSeeds(t *testing.T) {
	if *flagEvents != "" {
		if err := os.WriteFile(*flagEvents, seedEvents(t, *flagSeed, map[string]int{}), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	lines, kinds := make([]string, eventSeeds), map[string]int{}
	var next atomic.Int64
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for {
				seed := next.Add(1)
				if seed > eventSeeds {
					return
				}
				own := map[string]int{}
				raw := seedEvents(t, seed, own)
				lines[seed-1] = fmt.Sprintf("seed %d %.8x %d events", seed, sha256.Sum256(raw), bytes.Count(raw, []byte("\n")))
				mu.Lock()
				for kind, n := range own {
					kinds[kind] += n
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		lines = append(lines, fmt.Sprintf("%s %d", kind, kinds[kind]))
	}
	golden.Compare(t, filepath.Join("testdata", "events.txt"), strings.Join(lines, "\n")+"\n")
}

// seedEvents plays a seed and returns the events of its logs, one line of JSON each.
func seedEvents(t *testing.T, seed int64, kinds map[string]int) []byte {
	t.Helper()
	r := simulateSeed(seed, seedOptions{Record: true})
	if r.Err != nil {
		t.Error(r.Err)
	}
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	for _, box := range r.Mailboxes {
		var m activation.Machine = &activation.Agent{Addr: box.At, Watch: true}
		if box.At.Agent() == mailbox.Super {
			m = &activation.Supervisor{Addr: box.At, Watch: true}
		}
		l := activation.Watch(box.At, m)
		for _, entry := range box.Entries {
			read := l.Next(entry)
			for _, e := range activation.EventsOf(box.At, "", "", read.N, l.At, read.Events) {
				kinds[e.Kind]++
				if err := out.Encode(e); err != nil {
					t.Error(err)
				}
			}
		}
	}
	return b.Bytes()
}
