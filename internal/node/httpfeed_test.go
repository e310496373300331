package node

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// TestFlappingStreamsOfOneRun: twenty readers of one run, each dropped at random 50 times, end with exactly the events of the
// logs, although the first stream of the run began with a cursor that lies beyond its logs.
//
//behaviour:shows I2
func TestFlappingStreamsOfOneRun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	beyond := client.Positions{}
	const far = 1 << 20
	beyond.Advance(client.Event{Published: event.Published{ID: id + ".root#1048576.0", Seq: far}})
	const readers, dropsMin = 20, 50
	var wait, halfway sync.WaitGroup
	got := make([][]string, readers)
	halfway.Add(readers)
	wait.Go(func() { w.readDropped(id, beyond.Text(id), rand.New(rand.NewPCG(0, 0)), false) })
	for i := range readers {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 3))
			for drops, cursor := 0, ""; ; drops++ {
				if drops == dropsMin/2 {
					halfway.Done()
				}
				ids, next, complete := w.readDropped(id, cursor, random, drops < dropsMin)
				got[i] = append(got[i], ids...)
				if next != "" {
					cursor = next
				}
				if complete && drops >= dropsMin {
					return
				}
			}
		})
	}
	halfway.Wait()
	openGate(t, gate)
	wait.Wait()
	want, _ := pagedEvents(t, c, id)
	for i := range got {
		compareLogs(t, got[i], want)
	}
}
