package node

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
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

// A stream that begins now has the events that follow, each once, and none of those before; of a run that has ended there
// are none.
func TestStreamFromNowHasWhatFollows(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 2)
	open := func() *http.Response {
		reply, err := w.http.Do(w.request("GET", "/api/v1/runs/"+id+"/events?cursor=now", "", func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") }))
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	var before []string
	var first, second *http.Response
	for { // until no entry is appended while the streams begin
		before, _ = pagedEvents(t, c, id)
		first, second = open(), open()
		defer first.Body.Close()
		defer second.Body.Close()
		if now, _ := pagedEvents(t, c, id); slices.Equal(before, now) {
			break
		}
	}
	openGate(t, gate)
	all, _ := pagedEventsAtEnd(t, c, id)
	want := slices.DeleteFunc(all, func(e string) bool { return slices.Contains(before, e) })
	for i, reply := range []*http.Response{first, second} {
		got, cursor, ended := readStream(reply.Body, 1<<30)
		// A stream of an earlier attempt may not have sent all that is before: one that joins it receives that, too.
		got = slices.DeleteFunc(got, func(e string) bool { return slices.Contains(before, e) })
		if compareLogs(t, got, want); !ended || cursor == "" || len(want) == 0 {
			t.Errorf("stream %d: ended %t, cursor %q, %d events are wanted", i, ended, cursor, len(want))
		}
	}
	after := open()
	defer after.Body.Close()
	if after.StatusCode != http.StatusNoContent {
		t.Errorf("a run that has ended answers %d", after.StatusCode)
	}
}

// pagedEventsAtEnd are the events of a run that has ended.
func pagedEventsAtEnd(t *testing.T, c *client.Client, run string) (ids []string, raw map[string]string) {
	t.Helper()
	waitFinished(t, c, run, spec.Completed)
	return pagedEvents(t, c, run)
}

// Pages that are read while a run works, each after the cursor of the one before, have each event once.
func TestPagesOfAWorkingRunHaveEachEventOnce(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	var got []string
	seen, over := client.Positions{}, false
	read := func() {
		err := c.Events(testContext(t), id, seen.Cursor(), false, func(e client.Event, _ []byte) error {
			if seen.Advance(e) {
				got = append(got, e.ID)
			}
			over = over || e.Kind == event.KindRunFinished
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for pages := 0; !over; pages++ {
		if pages == 3 {
			openGate(t, gate)
		}
		read()
	}
	want, _ := pagedEventsAtEnd(t, c, id)
	read() // what agents reported after the end of the run
	compareLogs(t, got, want)
}
