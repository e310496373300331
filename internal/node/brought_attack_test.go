package node

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// Only the user's own command brings a directory to a node, and for exactly its request: whoever can only
// send requests gains no root by it, and a node that serves its roots alone accepts none.
func TestAttackAClientWidensTheRootsOfANode(t *testing.T) {
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
	refused("another prompt", build(shared, func(r *client.RunRequest) { r.Prompt = "Remove all files." }))
	refused("agents of a place that was not brought", build(shared, func(r *client.RunRequest) { r.Agents = other }))
	refused("a node that serves its roots", build(serving, same))
}
