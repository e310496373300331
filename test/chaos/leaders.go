package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
)

// serverFaults injects faults into the servers and their connections while other faults hit
// the nodes.
type serverFaults struct {
	t        *testCluster
	servers  *servers
	recorder *recorder
	race     *writerRace
	wait     sync.WaitGroup

	mu    sync.Mutex
	at    []time.Time // when leaders were killed
	moved map[string]string
	moves int
	cuts  []*fault
}

// openServers starts the servers, and the recorder of what they acknowledge.
func (t *testCluster) openServers() error {
	s, err := newServers(t.o, t.files.dir, t.o.servers)
	if err != nil {
		return err
	}
	t.broker = s
	if err := s.openAll(t.o.node); err != nil {
		return err
	}
	t.servers = &serverFaults{t: t, servers: s, moved: map[string]string{}}
	if t.servers.recorder, err = startRecorder(s, t.o.servers); err != nil {
		return err
	}
	if t.servers.race, err = newRace(s, t.o.servers); err != nil {
		return err
	}
	if err := t.startNodes(); err != nil {
		return err
	}
	unwatch, watch := t.unwatch, error(nil)
	if t.unwatch, watch = t.client.Watch(t.servers.noteEvent); watch != nil {
		t.unwatch = unwatch
		return watch
	}
	own := t.unwatch
	t.unwatch = func() { own(); unwatch() }
	return nil
}

// noteEvent counts the actors for which another node acts than before.
func (h *serverFaults) noteEvent(e client.Event) {
	at, _, _ := strings.Cut(e.ID, "#")
	h.mu.Lock()
	defer h.mu.Unlock()
	if was := h.moved[at]; was != "" && was != e.Node {
		h.moves++
	}
	h.moved[at] = e.Node
	if e.Kind == event.KindRunFinished || e.Kind == event.KindAgentFinished {
		delete(h.moved, at)
	}
}

// beginFaults begins to kill leaders, and to cut wires.
func (h *serverFaults) beginFaults() {
	if h == nil {
		return
	}
	h.wait.Go(func() {
		random := rand.New(rand.NewPCG(h.t.o.seed, 1))
		for n := range h.t.o.leaders {
			time.Sleep(h.t.o.every)
			h.killLeader(n+1, random)
		}
	})
	h.wait.Go(h.cutWires)
	h.wait.Go(h.cutPower)
}

// awaitOver waits until all faults are over and the servers are healthy.
func (h *serverFaults) awaitOver() {
	if h == nil {
		return
	}
	h.wait.Wait()
	if err := h.servers.awaitAll(); err != nil {
		h.t.found.add("%v", err)
	}
}

// down is how long a killed server stays down.
const down = 2 * time.Second

// streamsLed returns the streams that nodes use, and the leader of each.
func (h *serverFaults) streamsLed() (streams []string, led map[string]string, err error) {
	led, err = h.servers.streamLeaders()
	for stream, leader := range led {
		if h.servers.findServer(leader) != nil && (strings.HasPrefix(stream, "TROUPE_BOX_") || stream == "KV_troupe_shards") {
			streams = append(streams, stream)
		}
	}
	if err == nil && len(streams) == 0 {
		err = fmt.Errorf("no stream has a leader: %v", led)
	}
	slices.Sort(streams)
	return streams, led, err
}

// someLeader returns a server that leads a stream.
func (h *serverFaults) someLeader(random *rand.Rand) (*natsServer, error) {
	streams, led, err := h.streamsLed()
	if err != nil {
		return nil, err
	}
	return h.servers.findServer(led[streams[random.IntN(len(streams))]]), nil
}

// killLeader kills the leader of some stream and restarts it.
func (h *serverFaults) killLeader(no int, random *rand.Rand) {
	streams, led, err := h.streamsLed()
	if err != nil {
		h.t.found.add("who leads: %v", err)
		return
	}
	stream := streams[random.IntN(len(streams))]
	victim, leads := h.servers.findServer(led[stream]), 0
	for _, s := range streams {
		if led[s] == victim.name {
			leads++
		}
	}
	b := &fault{kind: "leader", node: victim.name, at: time.Now()}
	h.mu.Lock()
	h.at = append(h.at, b.at)
	h.mu.Unlock()
	h.t.observer.faultBegins(b)
	if err := h.servers.killServer(victim); err != nil {
		h.t.found.add("%v", err)
	}
	time.Sleep(down)
	err = h.servers.startServer(victim)
	if err == nil {
		err = h.servers.awaitServer(victim)
	}
	h.t.observer.faultEnds(b)
	if err != nil {
		h.t.found.add("%v", err)
		return
	}
	fmt.Printf("%3d | %8v | leader | %-6s | %4d | led %s and %d more; it was back and well after %v\n", no, b.at.Sub(h.t.began).Round(time.Millisecond),
		victim.name, h.t.load.countEnded(), stream, leads-1, time.Since(b.at).Round(time.Millisecond))
}

// judgeFaults judges the effects of the faults, once the nodes are gone.
func (h *serverFaults) judgeFaults() {
	if h == nil {
		return
	}
	h.recorder.endAppends()
	h.race.endWriters()
	for _, verdict := range []func() (string, error){h.recorder.judgeLogs, h.race.compareWrites} {
		text, err := verdict()
		if err != nil {
			h.t.found.add("%v", err)
		}
		fmt.Println(text)
	}
	if len(h.at) > 0 {
		stalls := h.recorder.longestAppends(h.at, h.t.o.every/2)
		fmt.Printf("%d leaders killed: the longest append of each, p50 %v, p99 %v, longest %v\n", len(h.at), quantile(stalls, 0.5), quantile(stalls, 0.99), quantile(stalls, 1))
	}
	h.judgeFencing()
	h.judgeActivations()
}

// judgeActivations counts how often actors were activated again: if no node died or was cut
// off, no activation is interrupted. A claim that was sent again before its answer came is in
// the log twice and is one activation. An actor that passivated or was handed off as planned
// has appended Released, and had nothing under way.
func (h *serverFaults) judgeActivations() {
	actors, broken, ended := 0, 0, map[string]int{}
	err := h.t.withPost(func(post *jetstream.Post) error {
		for _, r := range h.t.load.runs {
			f, err := replayRun(post, r.id)
			if err != nil {
				return err
			}
			for _, at := range sortedKeys(f.claims) {
				actors++
				for i, c := range f.claims[at][1:] {
					before := f.claims[at][i]
					if before.ended != "" {
						ended[before.ended]++
						continue
					}
					broken++
					if h.isCalm() {
						h.t.found.addOf(r.id, "no node died, and %s began anew on %s, %v after an activation on %s that did not end", at, c.node,
							time.Duration(c.at-before.at)*time.Millisecond, before.node)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		h.t.found.add("the logs: %v", err)
	}
	fmt.Printf("%d actors: %d activations were broken off, %d ended by a planned move, %d at rest; %d changes of node\n",
		actors, broken, ended[handedOver], ended[atRest], h.moves)
	if h.isCalm() && h.moves > ended[handedOver] {
		h.t.found.add("no node died, and %d actors went on on another node, %d of them as planned", h.moves, ended[handedOver])
	}
	if actors == 0 && h.t.o.trees == 0 {
		h.t.found.add("the logs hold no activation")
	}
}

// isCalm reports whether no fault was injected after which an actor may be activated again.
func (h *serverFaults) isCalm() bool {
	o := h.t.o
	return o.kills+o.stops+o.drains+o.points+o.zombies == 0 && !o.faultsServers()
}

// faultsServers reports whether faults are injected into the servers or their connections after
// which a node may rightly be taken for dead.
func (o options) faultsServers() bool {
	return o.cuts+o.power+o.shapes+o.trees > 0 || o.full == fullDisk || o.slow > 0
}

// closeWriters stops the recorder and the race.
func (h *serverFaults) closeWriters() error {
	if h == nil {
		return nil
	}
	return errors.Join(h.race.closeAll(), h.recorder.closeAll())
}
