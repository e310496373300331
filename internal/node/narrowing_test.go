package node

import (
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/client/audit"
	"github.com/troupe-run/troupe/internal/verify"
)

// TestNarrowedRightsSurviveARestart: over HTTP and by the client, an operator takes rights from one agent and from all, while a
// call of each works. The calls complete, on the next node: the changes hold there for every call that begins later. What would
// widen rights is refused.
//
//behaviour:shows E6
func TestNarrowedRightsSurviveARestart(t *testing.T) {
	t.Parallel()
	_, gate, agents := heldFamily(t)
	script := writeScript(t, `
agents:
  boss:
    - calls:
        - {name: delegate, args: {agent: keeper, task: "first"}}
        - {name: delegate, args: {agent: keeper, task: "second"}}
    - calls: [{name: delegate, args: {agent: keeper, task: "third"}}]
    - text: "end: {{last}}"
  keeper:
    - calls: [{name: wait}]
    - calls: [{name: list_dir}]
    - text: "listed: {{last}}"
`)
	roots := func(c *Config) { c.Roots = []string{agents} }
	first, w := startWeb(t, roots)
	c := connectClient(t, first)
	id := beginRun(t, c, client.RunRequest{Model: script, Agents: agents, Agent: "boss", Dir: agents, PermissionMode: "acceptEdits"})
	awaitEvents(t, c, id, event.KindToolStarted, 2) // they wait for the gate
	path := "/api/v1/runs/" + id + "/permissions"
	for _, refused := range []string{`{"mode":"bypassPermissions"}`, `{"mode":"acceptEdits"}`, `{"deny":["Bash("]}`, `{"deny":["no_such_tool"]}`, `{"agent":"root-9","deny":["list_dir"]}`, `{}`, `{"allow":["list_dir"]}`} {
		w.post(path, refused, http.StatusBadRequest, nil)
	}
	w.post(path, `{"agent":"root-1-0","deny":["list_dir"],"by":"ann"}`, http.StatusOK, nil)
	request := client.PermissionsRequest{RunID: id, Request: "n2", Deny: []string{"delegate"}, Mode: "default", By: "bob"}
	for range 2 { // the same request may be sent again
		if err := client.NarrowPermissions(testContext(t), c, request); err != nil {
			t.Fatal(err)
		}
	}
	awaitEvents(t, c, id, event.KindPermissionsChanged, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)

	second := startNode(t, first.cfg.StateDir, roots)
	c = connectClient(t, second)
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: id, Resume: true}); err != nil {
		t.Fatal(err)
	}
	info := waitFinished(t, c, id, spec.Failed) // what was denied is not carried out
	if !strings.Contains(info.Result.Detail, "the rule delegate (set by bob) denies it") {
		t.Errorf("result: %q", info.Result.Detail)
	}
	p, err := client.Permissions(testContext(t), c, id)
	if err != nil || len(p.Narrowings) != 2 || p.Narrowings[0].Agent != "root-1-0" || p.Narrowings[1].By != "bob" || p.Agents[0].Mode != spec.ModeDefault {
		t.Errorf("%+v %v", p, err)
	}
	checkNarrowedCalls(t, c, id)
	for _, found := range verify.Logs(dumpRun(t, c, id).Entries).Findings {
		t.Errorf("%+v", found)
	}
}

// checkNarrowedCalls checks which listings ran, and what the audit says.
func checkNarrowedCalls(t *testing.T, c *client.Client, id string) {
	t.Helper()
	ran, text := map[string]bool{}, ""
	err := c.Events(testContext(t), id, nil, false, func(e client.Event, _ []byte) error {
		if d := client.DataOf[event.ToolCall](e); e.Kind == event.KindToolFinished && d.Tool == "list_dir" {
			ran[e.Agent] = !d.Error
		}
		return nil
	})
	if err != nil || ran["root-1-0"] || !ran["root-1-1"] {
		t.Errorf("who listed: %v, %v", ran, err)
	}
	doc, err := audit.Read(testContext(t), c, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range doc.Entries {
		if e.Kind == audit.KindPermissions {
			text += e.Text + " by " + e.By + "\n"
		}
	}
	if want := "of root-1-0 and the agents below it, deny list_dir by ann\nof root and the agents below it, mode default, deny delegate by bob\n"; text != want {
		t.Errorf("the audit says\n%s, want\n%s", text, want)
	}
}
