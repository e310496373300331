package gateway

import (
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/supervisor"
)

// The log of a run whose supervisor was given up never says that the run is over: only its
// row does. Such a run can be deleted; one that is live by its row cannot.
func TestARunWhoseSupervisorWasGivenUpCanBeDeleted(t *testing.T) {
	post := memory.New(memory.Config{})
	at := mailbox.At("r", mailbox.Super)
	body, err := mailbox.Marshal(supervisor.Opened{Run: "r", Goal: "do it", Root: "lead", Rules: agent.Rules, Definitions: []supervisor.Definition{{Name: "lead"}}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "q", Kind: supervisor.Opened{}.Kind(), Body: body}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mailbox.Put(t.Context(), post, at, data); err != nil {
		t.Fatal(err)
	}
	c := &Control{cfg: Config{Post: post}}
	if _, err := c.ended(t.Context(), "r", Live); !hasCode(err, client.CodeConflict) {
		t.Errorf("a live run: %v", err)
	}
	ends, err := c.ended(t.Context(), "r", Finished)
	if err != nil || ends[at] == nil {
		t.Fatalf("a run that was given up: %v", err)
	}
	if err := c.bury(t.Context(), at, ends[at]); err != nil {
		t.Fatal(err)
	}
	if gone, err := Buried(t.Context(), post, "r"); err != nil || !gone {
		t.Errorf("after the delete: buried %t, %v", gone, err)
	}
}
