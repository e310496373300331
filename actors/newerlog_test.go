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

// TestANodeLeavesLogsThatAreNewer: a log with an entry of a newer form is left alone, by
// name, and nothing is done meanwhile (P10, FM25).
func TestANodeLeavesLogsThatAreNewer(t *testing.T) {
	inBubble(func(t *testing.T) {
		post := memory.New(memory.Config{})
		if _, err := mailbox.Put(t.Context(), post, "r1.super", []byte("\x83\xa1v\x02\xa1z\xc0\xa1m\x90")); err != nil {
			t.Fatal(err)
		}
		met := make(chan string, 4)
		client, set := scriptModel(t, `{agents: {boss: [{text: "done"}]}}`), toolSet(t)
		s := stageOf(t, actors.Config{Name: "test", Post: post, Lease: 1,
			Model:      func(string) (model.Client, string, error) { return client, "m", nil },
			Tools:      func(spec.Task) (*tool.Set, error) { return set, nil },
			OnNewerLog: func(at mailbox.Address, why string) { met <- why }})
		openRun(t, s, openedRun("r1"))
		if why := <-met; why == "" {
			t.Error("it is not said why")
		}
		s.awaitEvent(event.KindWarningRaised)
		s.node.Wake("r1.super") // nobody comes
		s.node.Stop()
		entries := 0
		if err := post.Read(t.Context(), "r1.super", 0, 0, func(mailbox.Message) error { entries++; return nil }); err != nil {
			t.Fatal(err)
		}
		if entries > 3 || len(met) > 0 { // what was sent to it, and the claim of who then fell silent
			t.Errorf("%d entries, %d more logs", entries, len(met))
		}
	})(t)
}
