package control

import (
	"context"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
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
