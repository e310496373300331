package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/supervisor"
)

// listStand is an index with runs r0000, r0001 and so on, which have ended.
func listStand(t *testing.T, runs int) *viewer {
	t.Helper()
	index := runindex.Open(bucketsOf(t, startEmbedded(t)))
	for i := range runs {
		_, err := index.Add(t.Context(), client.RunInfo{RunID: fmt.Sprintf("r%04d", i), State: client.RunFinished, Title: strings.Repeat("x", 80),
			Started: time.UnixMilli(int64(i) * 1000).UTC().Format(time.RFC3339)})
		if err != nil {
			t.Fatal(err)
		}
	}
	return newControl(Config{Runs: index}).parts.viewer
}

func listIDs(t *testing.T, c *viewer, r client.ListRequest) (ids []string) {
	t.Helper()
	reply, err := c.listRuns(t.Context(), r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	for _, info := range reply.([]client.RunInfo) {
		ids = append(ids, info.RunID)
	}
	return ids
}

// TestListSelectsRuns: by the beginning of the id, age, state and page.
func TestListSelectsRuns(t *testing.T) {
	c := listStand(t, 12)
	for _, tt := range []struct {
		r    client.ListRequest
		want []string
	}{
		{client.ListRequest{Limit: 2}, []string{"r0011", "r0010"}},
		{client.ListRequest{Limit: 2, Before: "r0010"}, []string{"r0009", "r0008"}},
		{client.ListRequest{Prefix: "r001"}, []string{"r0011", "r0010"}},
		{client.ListRequest{Prefix: "x"}, nil},
		{client.ListRequest{Since: "1970-01-01T00:00:10Z"}, []string{"r0011", "r0010"}},
		{client.ListRequest{State: client.RunParked}, nil},
		{client.ListRequest{State: client.RunFinished, Before: "r0001"}, []string{"r0000"}},
	} {
		if got := listIDs(t, c, tt.r); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q, want %q", tt.r, got, tt.want)
		}
	}
}

// TestRunsWithIDsOfPeopleAreListedByTheirStart: an id that a person has chosen says nothing about the age of its run.
func TestRunsWithIDsOfPeopleAreListedByTheirStart(t *testing.T) {
	index := runindex.Open(bucketsOf(t, startEmbedded(t)))
	want := []string{"aa", "01jd0000000000000000000000", "zz"} // of the years 2025, 2024 and 2020
	for run, began := range map[string]string{"zz": "2020-01-01T00:00:00Z", want[1]: "2024-11-18T00:00:00Z", "aa": "2025-01-01T00:00:00Z"} {
		if _, err := index.Add(t.Context(), client.RunInfo{RunID: run, State: client.RunFinished, Started: began}); err != nil {
			t.Fatal(err)
		}
	}
	c := newControl(Config{Runs: index}).parts.viewer
	if got := listIDs(t, c, client.ListRequest{}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var pages []string
	for r := (client.ListRequest{Limit: 1}); len(pages) <= len(want); r.Before = pages[len(pages)-1] {
		page := listIDs(t, c, r)
		if len(page) == 0 {
			break
		}
		pages = append(pages, page...)
	}
	if !slices.Equal(pages, want) {
		t.Errorf("page by page %q, want %q", pages, want)
	}
}

// TestListIsPagedWithoutAGap: pages of what fits a reply hold every run once.
func TestListIsPagedWithoutAGap(t *testing.T) {
	const runs = 5000
	c := listStand(t, runs)
	pages, next := 0, runs-1
	for r := (client.ListRequest{}); ; pages++ {
		ids := listIDs(t, c, r)
		if len(ids) == 0 {
			break
		}
		for _, id := range ids {
			if want := fmt.Sprintf("r%04d", next); id != want {
				t.Fatalf("page %d: %s, want %s", pages, id, want)
			}
			next--
		}
		r.Before = ids[len(ids)-1]
	}
	if next != -1 || pages < 2 {
		t.Errorf("%d runs are missing after %d pages", next+1, pages)
	}
}

// TestRunWithoutANodeIsInterrupted: a run that has not ended is not shown as live if nobody runs
// agents in one of its pools. A run that waits for a person stays parked.
func TestRunWithoutANodeIsInterrupted(t *testing.T) {
	serving := func(pools ...string) *Cluster {
		n := client.NodeInfo{Pools: map[string][]int{}}
		for _, p := range pools {
			n.Pools[p] = nil
		}
		return &Cluster{Nodes: func() []client.NodeInfo { return []client.NodeInfo{n} }}
	}
	s := supervisor.Summary{Agents: []supervisor.AgentSummary{{ID: "root"}, {ID: "root-1-0", Pool: "gpu"}}}
	for _, tt := range []struct {
		state client.RunState
		cfg   Config
		want  client.RunState
	}{
		{client.RunLive, Config{}, client.RunLive},
		{client.RunLive, Config{NoActors: true}, client.RunInterrupted},
		{client.RunQueued, Config{NoActors: true}, client.RunInterrupted},
		{client.RunParked, Config{NoActors: true}, client.RunParked},
		{client.RunFinished, Config{NoActors: true}, client.RunFinished},
		{client.RunLive, Config{Cluster: serving("default")}, client.RunInterrupted},
		{client.RunLive, Config{Cluster: serving("default", "gpu")}, client.RunLive},
	} {
		if got := newControl(tt.cfg).parts.viewer.shownState(tt.state, s); got != tt.want {
			t.Errorf("%s with %+v is shown as %s, want %s", tt.state, tt.cfg, got, tt.want)
		}
	}
}
