package node

import (
	"net/http"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cluster"
)

// clusterToken is the token of the HTTP server of a test's node on a shared server.
const clusterToken = "a-token-of-the-cluster-test"

// startClusterWeb starts two nodes on one server, of which the first serves HTTP.
func startClusterWeb(t *testing.T) (one, two *Node, w webClient) {
	t.Helper()
	return startClusterWebOn(t, startSharedServer(t))
}

// startClusterWebOn is startClusterWeb on a server that the test has.
func startClusterWebOn(t *testing.T, e *embedded.Server) (one, two *Node, w webClient) {
	t.Helper()
	one = joinAs(t, e, "one", func(c *Config) { c.HTTP = &HTTPConfig{Address: "127.0.0.1:0", Token: clusterToken} })
	two = joinAs(t, e, "two", func(*Config) {})
	waitForSpread(t, one, two)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return one, two, webClient{t, one.HTTPURL(), clusterToken, &http.Client{Transport: transport}}
}

// holdsByLeases reports whether every node holds shards, and as many by its own report as by the leases.
func holdsByLeases(info client.ClusterInfo) bool {
	held := map[string]int{}
	for _, l := range info.Leases {
		held[l.Node]++
	}
	return !slices.ContainsFunc(info.Nodes, func(n client.NodeInfo) bool { return n.Held() == 0 || n.Held() != held[n.ID] })
}

// GET /api/v1/cluster names the holder and the epoch of every shard, the streams with their sizes, and the nodes; a node is
// drained and lets itself be resumed over HTTP.
func TestClusterIsShownAndNodesAreDrainedOverHTTP(t *testing.T) {
	t.Parallel()
	one, two, w := startClusterWeb(t)
	c := connectClient(t, one)
	id := beginRun(t, c, client.RunRequest{Prompt: "hello", Model: writeScript(t, "default: [{text: hi}]")})
	waitFinished(t, c, id, spec.Completed)
	size := cluster.SizeOf("default")
	var info client.ClusterInfo
	waitUntil(t, "both nodes hold what the leases say", func() bool { // a shard that changes hands has no lease for a moment
		w.get("/api/v1/cluster", http.StatusOK, &info)
		return len(info.Leases) == size.Shards && holdsByLeases(info)
	})
	if len(info.Nodes) != 2 || len(info.Pools) != 1 || info.LeaseMS <= 0 {
		t.Fatalf("%d nodes, pools %+v, lease %d ms", len(info.Nodes), info.Pools, info.LeaseMS)
	}
	if p := info.Pools[0]; p.Name != "default" || p.Shards != size.Shards || p.Held != size.Shards || p.Streams != size.Streams || len(p.Nodes) != 2 {
		t.Errorf("pool %+v", p)
	}
	epochs := map[uint64]bool{}
	for _, l := range info.Leases {
		if l.Pool != "default" || l.Lapsed {
			t.Errorf("lease %+v", l)
		}
		epochs[l.Epoch] = true
	}
	if len(info.Leases) != size.Shards || len(epochs) != size.Shards {
		t.Errorf("%d leases with %d epochs, want %d", len(info.Leases), len(epochs), size.Shards)
	}
	messages := uint64(0)
	for _, s := range info.Streams {
		messages += s.Messages
		if s.Kind != "jetstream" || s.BytesMax == 0 || s.Messages > 0 && s.Bytes == 0 || s.Replicas != 1 {
			t.Errorf("stream %+v", s)
		}
	}
	if len(info.Streams) != size.Streams || messages == 0 {
		t.Errorf("%d streams with %d messages", len(info.Streams), messages)
	}

	w.post("/api/v1/nodes/nobody/drain", `{}`, http.StatusNotFound, nil)
	w.post("/api/v1/nodes/two/drain", `{"node":"one"}`, http.StatusBadRequest, nil)
	w.get("/api/v1/nodes/two/drain", http.StatusMethodNotAllowed, nil)
	var named []client.NodeInfo
	if w.post("/api/v1/nodes/two/drain", `{}`, http.StatusOK, &named); len(named) != 1 || named[0].Name != "two" {
		t.Errorf("drained %+v", named)
	}
	waitForSpread(t, one)
	waitUntil(t, "the cluster says so", func() bool {
		w.get("/api/v1/cluster", http.StatusOK, &info)
		return info.Nodes[1].State == "leaving" && info.Nodes[1].Held() == 0
	})
	w.post("/api/v1/nodes/two/drain", `{"undo":true}`, http.StatusOK, nil)
	waitForSpread(t, one, two)
}

// A stream that does not answer has an error, and the cluster is shown all the same.
func TestClusterIsShownWithAStreamThatIsGone(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	_, _, w := startClusterWebOn(t, e)
	name := names.Names{}.BoxStream("default", 0)
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	var info client.ClusterInfo
	waitUntil(t, "the cluster is shown with all leases", func() bool { // a shard that changes hands has none for a moment
		w.get("/api/v1/cluster", http.StatusOK, &info)
		return len(info.Nodes) == 2 && len(info.Leases) == cluster.SizeOf("default").Shards
	})
	if len(info.Streams) != cluster.SizeOf("default").Streams {
		t.Fatalf("%d streams: %+v", len(info.Streams), info.Streams)
	}
	for _, s := range info.Streams {
		if s.Pool != "default" || (s.Error != "") != (s.Name == name) {
			t.Errorf("%+v", s)
		}
	}
}

// A node that owns its logs alone shows how many bytes they have, and cannot be drained.
func TestClusterOfOneNodeOverHTTP(t *testing.T) {
	t.Parallel()
	h, w := startWeb(t)
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Prompt: "hello", Model: writeScript(t, "default: [{text: hi}]")})
	waitFinished(t, c, id, spec.Completed)
	var info client.ClusterInfo
	w.get("/api/v1/cluster", http.StatusOK, &info)
	if len(info.Nodes) != 1 || info.Nodes[0].State != "alone" || info.LeaseMS != 0 || len(info.Leases) != 0 {
		t.Errorf("%+v", info)
	}
	bytes := uint64(0)
	for _, s := range info.Streams {
		bytes += s.Bytes
	}
	if bytes == 0 {
		t.Errorf("streams %+v", info.Streams)
	}
	w.post("/api/v1/nodes/"+info.Nodes[0].Name+"/drain", `{}`, http.StatusConflict, nil)
}

// What is about all owners is for operators.
func TestAttackClusterOfOwners(t *testing.T) {
	t.Parallel()
	w, _, bob, _ := startOwnersWeb(t)
	bob.get("/api/v1/cluster", http.StatusForbidden, nil)
	bob.post("/api/v1/nodes/one/drain", `{}`, http.StatusForbidden, nil)
	w.get("/api/v1/cluster", http.StatusOK, nil)
	w.expect(w.request("GET", "/api/v1/cluster", "", func(r *http.Request) { r.Header.Del("Authorization") }), http.StatusUnauthorized, nil)
	w.expect(w.request("POST", "/api/v1/nodes/one/drain", "{}", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }), http.StatusForbidden, nil)
}

// A throttle is shown with the provider and the model that it slows down.
func TestThrottlesAreShownOverHTTP(t *testing.T) {
	t.Parallel()
	p := newPacedProvider(t)
	p.report(60, 30, false)
	h, w := startWeb(t, p.useProvider(t))
	runMany(t, h, 1)
	var info client.ClusterInfo
	w.get("/api/v1/cluster", http.StatusOK, &info)
	if len(info.Throttles) != 1 {
		t.Fatalf("throttles %+v", info.Throttles)
	}
	if g := info.Throttles[0]; g.Provider != "openai" || g.Model == "" || g.RequestsPerMinute != 60 || g.Window == 0 || g.Name == "" {
		t.Errorf("throttle %+v", g)
	}
}
