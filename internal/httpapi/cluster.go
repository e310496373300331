package httpapi

import (
	"net/http"

	"github.com/troupe-run/troupe/client"
)

// listNodes is GET /api/v1/nodes.
func listNodes(c *client.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		list, err := c.Nodes(r.Context())
		answer(w, list, err)
	}
}

// getCluster is GET /api/v1/cluster: nodes, pools, leases, streams and throttles. Only operators may ask.
func getCluster(c *client.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		info, err := client.Cluster(r.Context(), c)
		answer(w, info, err)
	}
}

// DrainOptions is the body of POST /api/v1/nodes/{node}/drain. Undo lets the node acquire shards again.
type DrainOptions struct {
	Undo bool `json:"undo,omitempty"`
}

// drainNode is POST /api/v1/nodes/{node}/drain, as `troupe nodes drain` and, with undo, `troupe nodes resume`.
func drainNode(c *client.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var doc DrainOptions
		if err := readBody(r, &doc, true); err != nil {
			refuseBody(w, err)
			return
		}
		list, err := c.Drain(r.Context(), client.DrainRequest{Node: r.PathValue("node"), Undo: doc.Undo})
		if list == nil {
			list = []client.NodeInfo{}
		}
		answer(w, list, err)
	}
}
