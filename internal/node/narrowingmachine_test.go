package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// TestNarrowingFollowsLinksOnTheMachineOfTheRun: a node of another machine passes a request with rules to the machine that has
// the directory of the run, where the links in their paths lead to what the run reads. Without a node there it refuses the
// rules, and still sets a mode.
func TestNarrowingFollowsLinksOnTheMachineOfTheRun(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	_, _, agents := heldFamily(t)
	if err := errors.Join(os.Mkdir(filepath.Join(agents, "real"), 0o700), os.Symlink("real", filepath.Join(agents, "link"))); err != nil {
		t.Fatal(err)
	}
	roots := func(c *Config) { c.Roots = []string{agents} }
	one := joinAs(t, e, "one", roots)
	two := joinAs(t, e, "two", roots)
	c, id := connectClient(t, two), client.NewID()
	script := writeScript(t, "default: [{calls: [{name: wait}]}, {text: end}]")
	if _, err := c.RunOn(testContext(t), "one", client.RunRequest{RunID: id, Prompt: "x", Model: script, Agents: agents, Agent: "keeper", Dir: agents}); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, id, event.KindToolStarted, 1)
	rule := func(request, file string) client.PermissionsRequest {
		return client.PermissionsRequest{RunID: id, Request: request, Deny: []string{"Read(link/" + file + ")"}}
	}
	if err := client.NarrowPermissionsOn(testContext(t), c, "two", rule("n1", "a")); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, id, event.KindPermissionsChanged, 1)
	p, err := client.Permissions(testContext(t), c, id)
	if err != nil || len(p.Narrowings) != 1 || !slices.ContainsFunc(p.Narrowings[0].Deny, func(r spec.PermissionRule) bool { return r.Text == "read_file(/real/a)" }) {
		t.Errorf("%+v %v", p.Narrowings, err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	var refused *client.Error
	err = client.NarrowPermissionsOn(testContext(t), c, "two", rule("n2", "b"))
	if !errors.As(err, &refused) || refused.Code != client.CodeUnavailable || !strings.Contains(refused.Text, "host-one") {
		t.Errorf("without a node of the machine: %v", err)
	}
	if err := client.NarrowPermissionsOn(testContext(t), c, "two", client.PermissionsRequest{RunID: id, Request: "n3", Mode: "plan"}); err != nil {
		t.Error(err)
	}
}
