package main

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/bus"
)

// The flag and the setting say how often a node looks for runs that no node owns, and its events show it.
//
//behaviour:shows K10
func TestANodeSweepsAsOftenAsItIsTold(t *testing.T) {
	for name, how := range map[string]struct{ flags, env []string }{
		"flag":    {flags: []string{"--reconcile-every", "50ms"}},
		"setting": {env: []string{"TROUPE_RECONCILE_EVERY=50ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			cmd := command(t, append([]string{"--store-dir", state, "--nats-port", "-1", "--durability", "lazy"}, how.flags...)...)
			cmd.Env = append(cmd.Env, how.env...)
			startNode(t, cmd)
			nc, _, err := bus.JoinOwner(state)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			sweeps := make(chan []byte, 100)
			if _, err := nc.Subscribe("troupe.evt._cluster.*."+event.KindRunReconciled, func(m *nats.Msg) { sweeps <- m.Data }); err != nil {
				t.Fatal(err)
			}
			late := time.After(patience)
			for range 3 {
				select {
				case raw := <-sweeps:
					var e struct{ Data event.RunReconciled }
					if err := json.Unmarshal(raw, &e); err != nil || e.Data != (event.RunReconciled{Why: "interval"}) {
						t.Errorf("%v %s", err, raw)
					}
				case <-late:
					t.Fatal("the node does not look for runs")
				}
			}
		})
	}
}
