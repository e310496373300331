package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// Only the user's own command brings a directory to a node, and for exactly its request: whoever can only
// send requests gains no root by it, and a node that serves its roots alone accepts none.
func TestAttackClientCannotWidenTheRootsOfANode(t *testing.T) {
	t.Parallel()
	root, away, other, state := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	node := func(userDirs bool) *Node {
		return newBuildOnlyNode(root, func(c *Config) {
			c.StateDir, c.requestsFromUser = state, false
			if c.UserDirs = userDirs; userDirs {
				*c = c.withDefaults()
			}
		})
	}
	own := newRequest(func(r *client.RunRequest) { r.Dir = away })
	build := func(h *Node, change func(r *client.RunRequest)) error {
		r := own
		change(&r)
		_, _, err := h.buildRun(r)
		return err
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "is not under a root of this node") {
			t.Errorf("%s: %v", what, err)
		}
	}
	shared, serving := node(true), node(false)
	same := func(*client.RunRequest) {}
	refused("before the user brings it", build(shared, same))
	if err := BringPlaces(Config{StateDir: state}, own); err != nil {
		t.Fatal(err)
	}
	if err := build(shared, same); err != nil {
		t.Errorf("the user's own request: %v", err)
	}
	refused("another directory", build(shared, func(r *client.RunRequest) { r.Dir = other }))
	refused("another run", build(shared, func(r *client.RunRequest) { r.RunID = client.NewID() }))
	for what, change := range map[string]func(r *client.RunRequest){
		"another prompt":       func(r *client.RunRequest) { r.Prompt = "Remove all files." },
		"writes are approved":  func(r *client.RunRequest) { r.Yes = true },
		"other tools":          func(r *client.RunRequest) { r.AllowedTools = []string{"Bash(*)"} },
		"another model":        func(r *client.RunRequest) { r.Model = "" },
		"another constraint":   func(r *client.RunRequest) { r.Constraints = []string{"Remove all files."} },
		"another criterion":    func(r *client.RunRequest) { r.Criteria = []string{"All files are removed."} },
		"a history":            func(r *client.RunRequest) { r.Fork = client.NewID() },
		"another conversation": func(r *client.RunRequest) { r.Conversation = "c" },
		"other loop options":   func(r *client.RunRequest) { r.LoopOptions = &spec.LoopOptions{AskPeople: true} },
		"a larger budget":      func(r *client.RunRequest) { r.MaxTokens = 1 << 30 },
	} {
		refused(what, build(shared, change))
	}
	refused("agents of a place that was not brought", build(shared, func(r *client.RunRequest) { r.Agents = other }))
	refused("a node that serves its roots", build(serving, same))
}

// Over NATS the recorded request itself is accepted, with all of its fields, and a changed copy of it is not. The
// record expires, so it does not outlive the tombstone of a deleted run.
func TestAttackChangedCopyOfARecordedRequestIsRefused(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	root, away, state := t.TempDir(), t.TempDir(), t.TempDir()
	h := startNode(t, state, func(c *Config) { c.Roots, c.UserDirs, c.requestsFromUser = []string{root}, true, false })
	c := connectClient(t, h)
	own := newRequest(func(r *client.RunRequest) {
		half := 0.5
		r.Dir, r.Temperature, r.Fallback = away, &half, []string{}
		r.Constraints, r.JSONSchema = []string{"a < b & \xff"}, json.RawMessage("{ \"type\" : \"object\", \"title\": \"<>\" }")
		r.LoopOptions = &spec.LoopOptions{AskPeople: true}
	})
	bring := func() {
		t.Helper()
		if err := BringPlaces(Config{StateDir: state}, own); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string, r client.RunRequest) {
		t.Helper()
		if _, err := c.Run(testContext(t), r); err == nil || !strings.Contains(err.Error(), "is not under a root of this node") {
			t.Errorf("%s: %v", what, err)
		}
	}
	bring()
	changed := own
	changed.Yes, changed.AllowedTools = true, []string{"Bash(*)", "Write"}
	refused("more rights", changed)
	records, old := filepath.Join(state, "brought"), time.Now().Add(-time.Hour)
	entries, err := os.ReadDir(records)
	if err != nil || len(entries) != 2 { // of the request, and of its directory
		t.Fatalf("%v %v", entries, err)
	}
	for _, e := range entries {
		if err := os.Chtimes(filepath.Join(records, e.Name()), old, old); err != nil {
			t.Fatal(err)
		}
	}
	refused("an hour later", own)
	bring()
	if _, err := c.Run(testContext(t), own); err != nil {
		t.Error(err)
	}
}

// Records do not pile up, and do not displace what the user has approved.
func TestRecordsOfBroughtDirectoriesAreRemoved(t *testing.T) {
	t.Parallel()
	state, away := t.TempDir(), t.TempDir()
	records, old := filepath.Join(state, "brought"), time.Now().Add(-time.Hour)
	for range 3 {
		if err := BringPlaces(Config{StateDir: state}, newRequest(func(r *client.RunRequest) { r.Dir = away })); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(records)
		if err != nil || len(entries) != 2 { // of the directory, and of the request
			t.Fatalf("%d records: %v", len(entries), err)
		}
		for _, e := range entries {
			if err := os.Chtimes(filepath.Join(records, e.Name()), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
}
