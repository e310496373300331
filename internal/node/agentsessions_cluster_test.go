package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// startAgentsOnCluster starts the nodes a and b, which export their agents.
func startAgentsOnCluster(t *testing.T, script string) *busCaller {
	t.Helper()
	e := startSharedServer(t)
	path := writeScript(t, script)
	hosts := map[string]*Node{}
	for _, name := range []string{"a", "b"} {
		hosts[name] = startSharedNodeWith(t, e, name, func(c *Config) {
			c.LeaseTTL, c.Model, c.AgentsOnBus = shard.TTLDefault, path, &AgentsOnBus{Owner: "ops", Heartbeat: 50 * time.Millisecond}
		})
	}
	waitForSpread(t, hosts["a"], hosts["b"])
	nc, err := e.Connect(bus.RoleClient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return &busCaller{t, nc}
}

// sessionBeat is the heartbeat of a session.
type sessionBeat struct {
	Session string `json:"session"`
	Node    string `json:"node"`
}

// A session that was spawned has one instance, also while another node works on a run of it: each prompt has the fields
// of the spawn.
func TestSpawnedSessionHasOneInstanceOnACluster(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	c := startAgentsOnCluster(t, asking)
	const sessions = 6
	for i := range sessions {
		s := c.control("spawn", fmt.Sprintf(`{"session_id":"s-%d","max_turns":3}`, i))
		if s.code != "" {
			t.Fatal(s.raw)
		}
		for sub := c.request(s.Subject, "Buy"); ; { // until the run waits for a person
			m := c.next(sub)
			if strings.Contains(string(m.Data), `"type":"query"`) {
				break
			}
			if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
				t.Fatalf("%s %s", code, m.Data)
			}
		}
	}
	// Both nodes export a conversation that began later: they have looked at the runs of the sessions.
	beats, err := c.nc.SubscribeSync("agents.hb.troupe.ops.>")
	if err != nil {
		t.Fatal(err)
	}
	user := client.New(c.nc, names.Names{})
	spread := map[string]string{} // node -> session
	instances := map[string]map[string]bool{}
	rounds := map[string]int{}
	for n := 0; len(rounds) < 2 || rounds["a"] < 3 || rounds["b"] < 3; {
		if len(spread) < 2 && n < 16 {
			if _, err := user.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "Buy", Conversation: fmt.Sprintf("z-%02d", n)}); err != nil {
				t.Fatal(err)
			}
			n++
		}
		var b sessionBeat
		if err := json.Unmarshal(c.next(beats).Data, &b); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(b.Session, "z-") && spread[b.Node] == "" {
			spread[b.Node] = b.Session
		}
		if spread[b.Node] == b.Session {
			rounds[b.Node]++
		}
		if strings.HasPrefix(b.Session, "s-") {
			if instances[b.Session] == nil {
				instances[b.Session] = map[string]bool{}
			}
			instances[b.Session][b.Node] = true
		}
	}
	if len(instances) != sessions {
		t.Errorf("%d sessions of %d", len(instances), sessions)
	}
	for name, nodes := range instances {
		if len(nodes) != 1 {
			t.Errorf("%s is exported by %v", name, nodes)
		}
	}
	for i := range sessions {
		if r := c.control("stop", fmt.Sprintf(`{"session_id":"s-%d"}`, i)); !r.OK {
			t.Errorf("%s", r.raw)
		}
	}
}
