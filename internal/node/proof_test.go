package node

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/troupe-run/troupe/internal/bus"
)

// startForeignServer starts a server that is not ours, and returns its address and that
// of its monitoring port.
func startForeignServer(t *testing.T, synced bool) (url string, monitor []string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT,
		NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: synced})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	return s.ClientURL(), []string{"http://" + s.MonitorAddr().String()}
}

// TestNodeRefusesAServerThatDoesNotSync: the node refuses a server that was seen not
// to sync, with the remedy; if it cannot check that, it reports so everywhere.
func TestNodeRefusesAServerThatDoesNotSync(t *testing.T) {
	t.Parallel()
	url, monitor := startForeignServer(t, false)
	cfg := Config{StateDir: t.TempDir(), Bus: bus.Options{Servers: url}, Monitor: monitor}
	if h, err := Start(testContext(t), cfg); !errors.Is(err, bus.ErrUnfit) || !strings.Contains(err.Error(), "sync_interval") {
		t.Fatalf("%v %v", h, err)
	}
	cfg.Lazy = true
	h := startNode(t, cfg.StateDir, func(c *Config) { c.Bus, c.Monitor, c.Lazy = cfg.Bus, monitor, true })
	if p := h.Proof(); p.Profile != bus.ServerLazy || len(p.UnprovenChecks()) > 0 {
		t.Errorf("%+v", p)
	}
	blind := startNode(t, t.TempDir(), func(c *Config) { c.Bus, c.Name, c.Lazy = cfg.Bus, "blind", false })
	if p := blind.Proof(); p.Profile != bus.ServerSync || !slices.Equal(p.UnprovenChecks(), []string{"durability"}) {
		t.Errorf("%+v", p)
	}
	c := connectClient(t, blind)
	waitUntil(t, "one node of two shows its proof", func() bool {
		list, err := c.Nodes(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		said := 0
		for _, n := range list {
			switch {
			case n.Name == "blind" && (n.Profile != "server" || n.Unproven != "durability"),
				n.Name != "blind" && (n.Profile != "server-lazy" || n.Unproven != ""):
				t.Fatalf("%+v", n)
			case n.Proof != nil:
				said++
			}
		}
		return len(list) == 2 && said == 1
	})
}

// TestANodeAloneTellsItsProfile: doctor shows the profile that the node saw.
func TestANodeAloneTellsItsProfile(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir(), func(*Config) {})
	list, err := connectClient(t, h).Nodes(testContext(t))
	if err != nil || len(list) != 1 || list[0].Proof == nil || list[0].State != "alone" {
		t.Fatalf("%+v %v", list, err)
	}
	if list[0].Profile != string(h.Proof().Profile) || list[0].Unproven != "" {
		t.Errorf("%+v", list[0])
	}
}
