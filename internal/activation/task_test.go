package activation_test

import (
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// TestTaskOfHasTheToolsThatWereAdded: a node that takes an agent up compares its tools with those that the agent has, also with those
// that its supervisor has added since it began. A client's own entry adds none.
func TestTaskOfHasTheToolsThatWereAdded(t *testing.T) {
	t.Parallel()
	at, super := mailbox.At("r", "root"), mailbox.At("r", mailbox.Super)
	entry := func(from mailbox.Address, fact interface{ Kind() string }) mailbox.Message {
		body, err := mailbox.Marshal(fact)
		if err != nil {
			t.Fatal(err)
		}
		data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: from, Items: []mailbox.Item{{ID: fact.Kind(), Kind: fact.Kind(), Body: body}}})
		if err != nil {
			t.Fatal(err)
		}
		return mailbox.Message{To: at, Data: data}
	}
	task := spec.Task{Run: "r", ID: spec.Root, Hashes: map[string]string{"tool:grep": "read:1"}, Tools: []model.ToolSpec{{Name: "grep"}, {Name: "glob"}}}
	added := agent.ContextSet{AddTools: []model.ToolSpec{{Name: "shell"}}, RemoveTools: []string{"glob"}, Hashes: map[string]string{"tool:shell": "effect:2"}}
	forged := agent.ContextSet{AddTools: []model.ToolSpec{{Name: "telnet"}}}
	got, ok := activation.TaskOf(at, []mailbox.Message{entry(super, agent.Submitted{Task: task}), entry(super, added), entry("", forged)})
	if !ok || len(got.Tools) != 2 || got.Tools[0].Name != "grep" || got.Tools[1].Name != "shell" || got.Hashes["tool:shell"] != "effect:2" {
		t.Errorf("%v: %+v %v", ok, got.Tools, got.Hashes)
	}
}
