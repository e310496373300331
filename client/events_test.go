package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
)

const run = "r1"

// nodeDouble is a node as a follower sees it: it tells what the logs hold by now,
// and publishes what happens, but not all of it.
type nodeDouble struct {
	t  *testing.T
	nc *nats.Conn

	mu       sync.Mutex
	all      []toldEvent // in the order in which it happened
	happened int
	asked    chan struct{} // closed at the first request
	requests int
}

type toldEvent struct {
	at   string
	n    uint64
	kind string
	id   string
	raw  json.RawMessage
}

// randomHistory makes a run of some agents with several events to an entry.
func randomHistory(random *rand.Rand) []toldEvent {
	var all []toldEvent
	next := map[string]uint64{}
	add := func(agent, kind string, events int) {
		at := run + "." + agent
		next[at] += 1 + random.Uint64N(3) // some entries tell nothing
		for i := range events {
			id := fmt.Sprintf("%s#%d.%d", at, next[at], i)
			raw := fmt.Sprintf(`{"v":1,"id":%q,"ts":"2026-01-02T03:04:05.000Z","run":%q,"agent":%q,"seq":%d,"kind":%q}`, id, run, agent, next[at], kind)
			all = append(all, toldEvent{at, next[at], kind, id, json.RawMessage(raw)})
		}
	}
	agents := []string{"super", "root", "root-1-0", "root-1-1"}
	for range 60 {
		kind := event.KindTurnStarted
		if random.IntN(20) == 0 {
			kind = event.KindAgentResumed
		}
		add(agents[random.IntN(len(agents))], kind, 1+random.IntN(3))
	}
	add("super", event.KindRunFinished, 1)
	return all
}

func playHistory(t *testing.T, all []toldEvent) (*nodeDouble, *client.Client) {
	t.Helper()
	e, err := embedded.Start(embedded.Config{StateDir: t.TempDir(), DontListen: true, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	dial := func(r bus.Role) *nats.Conn {
		nc, err := e.Connect(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	d := &nodeDouble{t: t, nc: dial(bus.RoleNode), all: all, asked: make(chan struct{})}
	if _, err := d.nc.Subscribe("troupe.cmd.events", d.answerPage); err != nil {
		t.Fatal(err)
	}
	if err := d.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return d, client.New(dial(bus.RoleClient), names.Names{})
}

// pageEntries is how many entries a page of the double has.
const pageEntries = 7

// answerPage answers with what is beyond the cursor, whole entries only.
func (d *nodeDouble) answerPage(m *nats.Msg) {
	var r client.EventsRequest
	if err := json.Unmarshal(m.Data, &r); err != nil {
		d.t.Error(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := client.EventsPage{Events: []json.RawMessage{}, Cursor: client.Cursor{}}
	entries := 0
	for i, e := range d.all[:d.happened] {
		if e.n <= r.From[e.at] {
			continue
		}
		if i == 0 || d.all[i-1].at != e.at || d.all[i-1].n != e.n {
			if entries++; entries > pageEntries {
				p.More = true
				break
			}
		}
		p.Events, p.Cursor[e.at] = append(p.Events, e.raw), e.n
	}
	raw, err := json.Marshal(p)
	if err == nil {
		err = m.Respond(raw)
	}
	if err != nil {
		d.t.Error(err)
	}
	if d.requests++; d.requests == 1 {
		close(d.asked)
	}
}

// publishRest lets everything from now on happen, entry by entry; lose says what
// no observer hears of. Something is said again now and then.
func (d *nodeDouble) publishRest(random *rand.Rand, lose func(toldEvent) bool) {
	for i := 0; i < len(d.all); {
		entry := d.all[i:]
		entry = entry[:1+slices.IndexFunc(append(entry[1:len(entry):len(entry)], toldEvent{}), func(e toldEvent) bool { return e.at != entry[0].at || e.n != entry[0].n })]
		i += len(entry)
		d.mu.Lock()
		old := d.happened
		d.happened = max(old, i)
		d.mu.Unlock()
		if i <= old {
			continue
		}
		for _, e := range entry {
			times := 1 + random.IntN(2)
			if lose(e) {
				times = 0
			}
			for range times {
				if err := d.nc.Publish("troupe.evt."+e.at+"."+e.kind, e.raw); err != nil {
					d.t.Error(err)
				}
			}
		}
	}
	if err := d.nc.Flush(); err != nil {
		d.t.Error(err)
	}
}

// Whatever gets lost on the way: each event comes once, none is missing, and
// the end is the last.
//
//behaviour:shows I2
func TestAFollowerMissesNothing(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			all := randomHistory(random)
			d, c := playHistory(t, all)
			// Part of it is over before anybody looks.
			d.happened = 0
			for d.happened < len(all)/3 || all[d.happened].n == all[d.happened-1].n && all[d.happened].at == all[d.happened-1].at {
				d.happened++
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				<-d.asked
				share := random.Float64()
				d.publishRest(random, func(e toldEvent) bool { return e.kind != event.KindRunFinished && random.Float64() < share })
			}()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var got []string
			err := c.Events(ctx, run, nil, true, func(e client.Event, _ []byte) error {
				got = append(got, e.ID)
				return nil
			})
			<-done
			if err != nil {
				t.Fatal(err)
			}
			want := make([]string, len(all))
			for i, e := range all {
				want[i] = e.id
			}
			if got[len(got)-1] != want[len(want)-1] {
				t.Errorf("the last is %s", got[len(got)-1])
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

// Where nothing is lost, the order of each log is kept, and a cursor leaves
// out what is before it.
func TestCursorContinuesWithoutRepeating(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	all := randomHistory(random)
	d, c := playHistory(t, all)
	d.happened = len(all)
	from := client.Cursor{run + ".super": 0, run + ".root": all[len(all)/2].n}
	var got, want []string
	err := c.Events(context.Background(), run, from, true, func(e client.Event, _ []byte) error {
		got = append(got, e.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.n > from[e.at] {
			want = append(want, e.id)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if from[run+".super"] != 0 || len(from) != 2 {
		t.Errorf("the caller's cursor was changed: %v", from)
	}
}

// What anybody may publish there does not stop a follower, and an error of
// each does.
func TestAFollowerAmongStrangers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	all := randomHistory(random)
	d, c := playHistory(t, all)
	go func() {
		<-d.asked
		for _, junk := range []string{"", "{", "null", "[]", `"x"`, `{"id":""}`, `{"kind":"run.finished"}`, `{"id":5}`} {
			if err := d.nc.Publish("troupe.evt."+run+".super.run.finished", []byte(junk)); err != nil {
				t.Error(err)
			}
		}
		d.publishRest(random, func(toldEvent) bool { return false })
	}()
	got := 0
	err := c.Events(context.Background(), run, nil, true, func(e client.Event, _ []byte) error {
		if !strings.HasPrefix(e.ID, run+".") {
			t.Errorf("%+v", e)
		}
		got++
		return nil
	})
	if err != nil || got != len(all) {
		t.Errorf("%d of %d, %v", got, len(all), err)
	}
	stop := errors.New("stop here")
	err = c.Events(context.Background(), run, nil, true, func(client.Event, []byte) error { return stop })
	if !errors.Is(err, stop) {
		t.Error(err)
	}
	if err := c.Events(context.Background(), run, nil, true, func(client.Event, []byte) error { return client.ErrStop }); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Events(ctx, run, nil, true, func(client.Event, []byte) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
