package node

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/cluster/shard"
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
	at := mailbox.At(id, mailbox.Super)
	place := putNewerEntry(t, h, at)
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
	err := h.post.Read(testContext(t), at, place, 0, func(m mailbox.Message) error {
		if m.Place > place {
			t.Errorf("something was appended at %d", m.Place)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestANodePassesOnTheShardOfANewerLog: a node that reads an entry of a form that it does not
// know reports the shard, which nodes of the newer release should hold (P10, FM25).
func TestANodePassesOnTheShardOfANewerLog(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	h := startNode(t, t.TempDir(), func(c *Config) {
		c.Name, c.LeaseTTL, c.Bus = "old", shard.TTLMin, e.ConnectOptions(bus.RoleNode)
	})
	waitForSpread(t, h)
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Prompt: "wait", Model: writeScript(t, "default: [{text: at last, delay: 10m}]")})
	awaitEvents(t, c, id, event.KindModelStarted, 1)
	putNewerEntry(t, h, mailbox.At(id, mailbox.Super))
	waitUntil(t, "the node says what it leaves to others", func() bool {
		list, err := c.Nodes(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list, func(n client.NodeInfo) bool { return n.Name == "old" && len(n.Avoids) > 0 })
	})
}

// putNewerEntry appends an entry of a form that this program does not know to a log.
func putNewerEntry(t *testing.T, h *Node, at mailbox.Address) (place uint64) {
	t.Helper()
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
	place, err = mailbox.Put(testContext(t), h.post, at, entry)
	if err != nil {
		t.Fatal(err)
	}
	return place
}
