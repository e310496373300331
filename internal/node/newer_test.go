package node

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
)

// TestARunOfANewerTroupeIsNamedAndNotTouched: its log has an entry of a form that this
// program does not know. A client that asks for the run learns that, and nothing is
// appended.
func TestARunOfANewerTroupeIsNamedAndNotTouched(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Prompt: "wait", Model: writeScript(t, "default: [{text: at last, delay: 10m}]")})
	awaitEvents(t, c, id, event.KindModelStarted, 1)
	entry, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "x", Kind: agent.Steered{}.Kind(), Body: []byte{0x80}}}})
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(entry, []byte{'v', mailbox.Form})
	if i < 0 {
		t.Fatalf("no form in %q", entry)
	}
	entry[i+1]++
	if _, err := mailbox.Decode(entry); !errors.Is(err, mailbox.ErrForm) {
		t.Fatalf("%v", err)
	}
	at := mailbox.At(id, mailbox.Super)
	place, err := mailbox.Put(testContext(t), h.post, at, entry)
	if err != nil {
		t.Fatal(err)
	}
	_, get := c.Get(testContext(t), id)
	_, cancel := c.Cancel(testContext(t), client.CancelRequest{RunID: id, WaitMS: -1})
	_, deleted := c.Delete(testContext(t), id)
	for verb, err := range map[string]error{"get": get, "cancel": cancel, "delete": deleted} {
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Code != client.CodeConflict || !strings.Contains(refused.Text, "written by a newer troupe: upgrade this one") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if list, err := c.List(testContext(t)); err != nil || len(list) != 1 || list[0].RunID != id {
		t.Errorf("%+v, %v", list, err)
	}
	err = h.post.Read(testContext(t), at, place, 0, func(m mailbox.Message) error {
		if m.Place > place {
			t.Errorf("something was appended at %d", m.Place)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
