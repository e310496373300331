package control

import (
	"context"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/refuse"
)

// TestDrainReadsTheNodesFromTheServer: a client has read from another node that node two stays or has joined, and the
// node that answers has not seen it yet.
func TestDrainReadsTheNodesFromTheServer(t *testing.T) {
	serving := func(name, state string) client.NodeInfo {
		return client.NodeInfo{ID: name, Name: name, State: state, Pools: map[string][]int{"default": nil}}
	}
	server := []client.NodeInfo{serving("one", "live"), serving("two", "live")}
	asked := ""
	v := newControl(Config{Cluster: &Cluster{
		Nodes:     func() []client.NodeInfo { return []client.NodeInfo{serving("one", "live"), serving("two", "leaving")} },
		ReadNodes: func(context.Context) ([]client.NodeInfo, error) { return server, nil },
		Ask: func(_ context.Context, name string, _ bool) error {
			asked = name
			return nil
		},
	}}).parts.viewer
	named, err := v.drainNodes(t.Context(), client.DrainRequest{Node: "one"})
	if list, ok := named.([]client.NodeInfo); err != nil || !ok || len(list) != 1 || list[0].Warning != "" || asked != "one" {
		t.Errorf("%+v, %v, asked %q", named, err, asked)
	}
	server[1].State = "leaving"
	named, err = v.drainNodes(t.Context(), client.DrainRequest{Node: "one"})
	if list, ok := named.([]client.NodeInfo); err != nil || !ok || len(list) != 1 || !strings.Contains(list[0].Warning, "pool default") {
		t.Errorf("%+v, %v", named, err)
	}
}

// TestAttackADrainNamesNoNode: the name becomes a key, and a server closes a connection for good that names one which is
// too long.
func TestAttackADrainNamesNoNode(t *testing.T) {
	asked := ""
	v := newControl(Config{Cluster: &Cluster{
		ReadNodes: func(context.Context) ([]client.NodeInfo, error) { return nil, nil },
		Ask: func(_ context.Context, name string, _ bool) error {
			asked = name
			return nil
		},
	}}).parts.viewer
	for _, name := range []string{strings.Repeat("A", 5000), strings.Repeat("A", names.NodeNameBytesMax+10), "a\nb", "a\x00", "a\u202eb", "a\xff"} {
		if _, err := v.drainNodes(t.Context(), client.DrainRequest{Node: name, Undo: true}); !refuse.HasCode(err, client.CodeBad) || len(err.Error()) > 400 || asked != "" {
			t.Errorf("%.20q of %d bytes: %v, asked %.20q", name, len(name), err, asked)
		}
	}
	for _, name := range []string{"rack7.example.com", "Ann's Mac", strings.Repeat("a", names.NodeNameBytesMax) + "-0a1b2c3d"} {
		if _, err := v.drainNodes(t.Context(), client.DrainRequest{Node: name, Undo: true}); err != nil || asked != name {
			t.Errorf("%s: %v, asked %q", name, err, asked)
		}
	}
}
