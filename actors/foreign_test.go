package actors_test

import (
	"testing"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// TestANodeLeavesLogsThatAreNewer: a run under newer rules, an entry of a newer
// form and an own entry of an unknown kind are left alone, by name; a node that
// knows them goes on, and nothing was done meanwhile (P10, FM25).
func TestANodeLeavesLogsThatAreNewer(t *testing.T) {
	for name, newer := range map[string]struct {
		rules int
		entry []byte
	}{
		"rules": {rules: spec.Rules + 1},
		"form":  {spec.Rules, []byte("\x83\xa1v\x02\xa1z\xc0\xa1m\x90")},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			post := memory.New(memory.Config{})
			if newer.entry != nil {
				if _, err := mailbox.Put(t.Context(), post, "r1.super", newer.entry); err != nil {
					t.Fatal(err)
				}
			}
			met := make(chan string, 4)
			start := func(lease uint64, rules int) *testNode {
				client, set := scriptModel(t, `{agents: {boss: [{text: "done"}]}}`), toolSet(t)
				return stageOf(t, actors.Config{Name: "test", Post: post, Lease: lease, Rules: rules,
					Model:   func(string) (model.Client, string, error) { return client, "m", nil },
					Tools:   func(spec.Task) (*tool.Set, error) { return set, nil },
					Foreign: func(at mailbox.Address, why string) { met <- why }})
			}
			old := start(1, 0)
			o := openedRun("r1")
			o.Rules = newer.rules
			openRun(t, old, o)
			if why := <-met; why == "" {
				t.Error("it is not said why")
			}
			old.awaitEvent(event.KindWarningRaised)
			old.node.Wake("r1.super") // nobody comes
			old.node.Stop()
			entries := 0
			if err := post.Read(t.Context(), "r1.super", 0, 0, func(mailbox.Message) error { entries++; return nil }); err != nil {
				t.Fatal(err)
			}
			if entries > 3 || len(met) > 0 { // what was sent to it, and the claim of who then fell silent
				t.Errorf("%d entries, %d more logs", entries, len(met))
			}
			if newer.entry != nil {
				return // there is no program that knows it
			}
			young := start(2, newer.rules)
			if err := young.node.Resume(t.Context(), "r1"); err != nil {
				t.Fatal(err)
			}
			if r := young.awaitResult(); r.Reason != spec.Completed {
				t.Errorf("%+v", r)
			}
		}))
	}
}
