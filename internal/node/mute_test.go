package node

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/mailbox"
)

// silenceableServer is an external server of which one part can stop answering, as a stream without
// a leader does.
type silenceableServer struct{ *server.Server }

func newSilenceableServer(t *testing.T) silenceableServer {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return silenceableServer{s}
}

// muteSubject redirects requests to a subject to one that no server answers.
func (s silenceableServer) muteSubject(t *testing.T, subject, to string) {
	t.Helper()
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if _, err := nc.Subscribe(to, func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.GlobalAccount().AddMapping(subject, to); err != nil {
		t.Fatal(err)
	}
}

func (s silenceableServer) startNode(t *testing.T, name string, roots ...string) *Node {
	t.Helper()
	return startNode(t, t.TempDir(), func(c *Config) {
		c.Name, c.Roots, c.LeaseTTL, c.Bus = name, roots, shard.TTLDefault, bus.Options{Servers: s.ClientURL()} // who closes gives its leases back at once
	})
}

// TestLeaderlessStreamDelaysNoOther: a node leaves while one stream of eight does
// not answer. Its actors in the seven other streams continue on the next node, whichever
// request to that stream gets no reply (P17).
func TestLeaderlessStreamDelaysNoOther(t *testing.T) {
	t.Parallel()
	const mute = 1
	stream := names.Names{}.BoxStream(names.DefaultPool, mute)
	for what, subject := range map[string][2]string{
		"its end":    {"$JS.API.STREAM.INFO." + stream, "nobody.info"},
		"its newest": {"$JS.API.CONSUMER.CREATE." + stream + ".>", "nobody.consumer.>"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSilenceableServer(t)
			model, gate, agents := heldFamily(t)
			one := s.startNode(t, "one", agents)
			waitForSpread(t, one)
			c := connectClient(t, one)
			inMute := func(at mailbox.Address) bool {
				return mailbox.Shard(at, one.logOwner.Inspect().Pools[0].Shards)%one.streams.Streams() == mute
			}
			var elsewhere []string // runs with no log in that stream
			for mutes := 0; len(elsewhere) < 4 || mutes == 0; {
				id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "keeper"})
				awaitEvents(t, c, id, event.KindToolStarted, 1)
				at, err := one.post.Addresses(testContext(t), id)
				if err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(at, inMute) {
					mutes++
					continue
				}
				elsewhere = append(elsewhere, id)
			}
			two := s.startNode(t, "two", agents)
			s.muteSubject(t, subject[0], subject[1])
			if err := one.Close(); err != nil {
				t.Fatal(err)
			}
			openGate(t, gate)
			for _, id := range elsewhere {
				finishedAt(t, two, id)
			}
		})
	}
}

// TestRunMissingFromTheIndexContinuesInAllStreams: the opener died before it wrote the
// index. Whichever stream is read first, all actors of the run are taken up.
func TestRunMissingFromTheIndexContinuesInAllStreams(t *testing.T) {
	t.Parallel()
	s := newSilenceableServer(t)
	model, gate, agents := heldFamily(t)
	one := s.startNode(t, "one", agents)
	waitForSpread(t, one)
	c := connectClient(t, one)
	ids := make([]string, 6)
	for i := range ids {
		ids[i] = beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "keeper"})
		awaitEvents(t, c, ids[i], event.KindToolStarted, 1)
		if err := one.runs.Remove(testContext(t), ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	two := s.startNode(t, "two", agents)
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)
	for _, id := range ids {
		finishedAt(t, two, id)
	}
}

// finishedAt waits until the index of a node says that a run is completed.
func finishedAt(t *testing.T, h *Node, id string) {
	t.Helper()
	limit := testContext(t)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		info, _, err := h.runs.Get(limit, id)
		switch {
		case err == nil && info.State == client.RunFinished && info.Result.Reason == spec.Completed:
			return
		case err == nil && info.State == client.RunFinished, limit.Err() != nil:
			t.Fatalf("the run %s: %s %+v, %v; it holds %d shards", id, info.State, info.Result, err, len(h.logOwner.Inspect().Keeper.HeldShards()))
		}
	}
}
