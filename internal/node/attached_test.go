package node

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// The attachments of a run that was then refused can be deleted.
func TestAttachmentsOfARefusedRunAreDeleted(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	run := client.NewID()
	a, err := c.Attach(testContext(t), run, "cat.png", model.PNG, encodePNG(t, 30, 20))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: run, Prompt: "What is this?", Model: "builtin/scout", Attach: []client.Attachment{a}}); err == nil {
		t.Fatal("a model that takes no image takes one")
	}
	if _, err := c.Delete(testContext(t), run); err == nil {
		t.Error("there is a run to delete")
	}
	if _, size, err := h.blobs.Get(testContext(t), run, a.Parts[0], 0, 1<<20); !errors.Is(err, mailbox.ErrNoBlob) {
		t.Errorf("%d bytes are left: %v", size, err)
	}
}

// A deleted run takes no more attachments, and a run that exists only those that it has:
// others would never be removed, or used. A client that sends them again because a reply
// was lost finds them stored.
func TestExistingOrDeletedRunTakesNoAttachments(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	run, data := client.NewID(), encodePNG(t, 30, 20)
	attach := func(data []byte) (client.Attachment, string) {
		t.Helper()
		a, err := c.Attach(testContext(t), run, "cat.png", model.PNG, data)
		var refused *client.Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		} else if err != nil {
			return a, refused.Code
		}
		return a, ""
	}
	a, _ := attach(data)
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: run, Prompt: "?", Model: writeScript(t, `default: [{text: "a cat"}]`), Attach: []client.Attachment{a}}); err != nil {
		t.Fatal(err)
	}
	waitFinished(t, c, run, spec.Completed)
	if again, code := attach(data); code != "" || !slices.Equal(again.Parts, a.Parts) {
		t.Errorf("sent again: %+v %s", again, code)
	}
	if _, code := attach([]byte("more")); code != client.CodeConflict {
		t.Errorf("more for a run that is there: %q", code)
	}
	if err := c.Withdraw(testContext(t), run); err == nil {
		t.Error("the attachments of a run that is there are withdrawn")
	}
	if _, err := c.Delete(testContext(t), run); err != nil {
		t.Fatal(err)
	}
	if _, code := attach(data); code != client.CodeGone {
		t.Errorf("to a deleted run: %q", code)
	}
	if _, size, err := h.blobs.Get(testContext(t), run, mailbox.BlobRef(data), 0, 1<<20); !errors.Is(err, mailbox.ErrNoBlob) {
		t.Errorf("%d bytes are left: %v", size, err)
	}
}

// Attachments of a run that is then not started are removed; to remove none is no error.
func TestAttachmentsOfAnUnopenedRunAreRemoved(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	run := client.NewID()
	a, err := c.Attach(testContext(t), run, "a.txt", "text/plain", []byte("hello"))
	for range 2 {
		if err == nil {
			err = c.Withdraw(testContext(t), run)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, size, err := h.blobs.Get(testContext(t), run, a.Parts[0], 0, 1<<20); !errors.Is(err, mailbox.ErrNoBlob) {
		t.Errorf("%d bytes are left: %v", size, err)
	}
}

// All attachments together fit into one request of the provider with the least room.
func TestAttachmentsFitOneRequest(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir(), withEnv("ANTHROPIC_API_KEY", "k"))
	c := connectClient(t, h)
	run := client.NewID()
	data := append(encodePNG(t, 3, 3), make([]byte, model.MediaBytesMax-200)...)
	a, err := c.Attach(testContext(t), run, "a.png", model.PNG, data)
	if err != nil {
		t.Fatal(err)
	}
	for n, refused := range map[int]bool{5: false, 6: true, model.MediaMax: true} {
		list := make([]client.Attachment, n)
		for i := range list {
			list[i] = a
		}
		_, _, err := h.buildRun(client.RunRequest{RunID: run, Prompt: "?", Model: "anthropic/claude-opus-5-5", Attach: list})
		if (err != nil && strings.Contains(err.Error(), "in total")) != refused {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// A secret across the border of two parts is found in the whole.
func TestASecretInAnAttachmentIsRefused(t *testing.T) {
	t.Parallel()
	const key = "sk-live-51H8xQmZp0aVbNcR"
	h := startNode(t, t.TempDir(), withEnv("OPENAI_API_KEY", key))
	c := connectClient(t, h)
	run := client.NewID()
	a, err := c.Attach(testContext(t), run, "a.txt", "text/plain", []byte(strings.Repeat("x", client.AttachPartBytes-10)+key))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Run(testContext(t), client.RunRequest{RunID: run, Prompt: "?", Model: writeScript(t, `default: [{text: "a cat"}]`), Attach: []client.Attachment{a}})
	if err == nil || !strings.Contains(err.Error(), "holds a secret") || strings.Contains(err.Error(), key) {
		t.Error(err)
	}
}
