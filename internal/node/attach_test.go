package node

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// jpegHeader is the beginning of a JPEG, up to its size. Package image/jpeg would register
// the decoder that the node must bring itself.
func jpegHeader(width, height int) []byte {
	return append([]byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xc0\x00\x11\x08"),
		byte(height>>8), byte(height), byte(width>>8), byte(width), 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1)
}

// encodePNG is a PNG of a size.
func encodePNG(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An attachment is sent in parts, is a blob of the run, and the root's first message names
// it; one that differs from its declaration is refused.
func TestAttachmentComesWithThePrompt(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	play := writeScript(t, `default: [{text: "a cat"}]`)
	long := bytes.Repeat([]byte("line,of,a,table\n"), 40_000) // three parts
	run := client.NewID()
	var sent []client.Attachment
	for _, f := range []struct {
		name, mime string
		data       []byte
	}{{"cat.png", model.PNG, encodePNG(t, 30, 20)}, {"t.csv", "text/csv", long}} {
		a, err := c.Attach(testContext(t), run, f.name, f.mime, f.data)
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, a)
	}
	if len(sent[1].Parts) != 3 {
		t.Errorf("%d bytes in %d parts", sent[1].Size, len(sent[1].Parts))
	}
	swapped, short, other := sent[1], sent[1], sent[0]
	swapped.Parts = slices.Clone(sent[1].Parts)
	slices.Reverse(swapped.Parts)
	swapped.Type, short.Size, other.Type = model.PDF, short.Size-1, model.JPEG
	lost := sent[0]
	lost.Parts = []string{mailbox.BlobRef([]byte("nobody sent this"))}
	for says, list := range map[string][]client.Attachment{
		"is text/plain, not application/pdf":         {swapped},
		"has more bytes than":                        {short},
		"is image/png, not image/jpeg":               {other},
		"no such blob":                               {lost},
		"9 attachments; a prompt can have at most 8": slices.Repeat(sent[:1], 9),
		"has 0 bytes, 1 to 3932160":                  {{Name: "x", Type: model.PNG}},
		"attachment name \"a\\nb\" is too long, or":  {{Name: "a\nb", Type: model.PNG, Size: 1}},
		"builtin/scout does not accept image/png":    sent[:1],
	} {
		r := client.RunRequest{RunID: run, Prompt: "What is this?", Model: play, Attach: list}
		if strings.Contains(says, "scout") {
			r.Model = "builtin/scout"
		}
		var refused *client.Error
		if _, err := c.Run(testContext(t), r); !errors.As(err, &refused) || refused.Code != client.CodeBad || refused.Hint == "" || !strings.Contains(refused.Text, says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: run, Prompt: "What is this?", Model: play, Attach: sent}); err != nil {
		t.Fatal(err)
	}
	waitFinished(t, c, run, spec.Completed)
	s, err := runlog.ReplayAgent(testContext(t), h.post, mailbox.At(run, "root"))
	if err != nil {
		t.Fatal(err)
	}
	got := s.History[0].Media
	if len(got) != 2 || got[0].Kind != model.Image || got[0].Name != "cat.png" || got[1].Size != int64(len(long)) || got[1].Ref != mailbox.BlobRef(long) || got[1].Most == 0 {
		t.Errorf("%+v", got)
	}
}

// Under a limit no medium is sent whose maximum cost is unpublished, unless the user allows
// it by name; every model of a chain must accept it.
//
//behaviour:shows G1
func TestUnboundedMediaMustBeAllowedByName(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := startNode(t, t.TempDir(), withEnv("ANTHROPIC_API_KEY", "k", "GEMINI_API_KEY", "k", "OPENAI_API_KEY", "k"))
	c := connectClient(t, h)
	run := client.NewID()
	pdf, err := c.Attach(testContext(t), run, "a.pdf", model.PDF, []byte("%PDF-1.7 and so on"))
	if err != nil {
		t.Fatal(err)
	}
	image, err := c.Attach(testContext(t), run, "a.png", model.PNG, encodePNG(t, 1568, 728))
	if err != nil {
		t.Fatal(err)
	}
	photo, err := c.Attach(testContext(t), run, "a.jpg", model.JPEG, jpegHeader(1568, 728))
	if err != nil {
		t.Fatal(err)
	}
	const claude = "anthropic/claude-opus-5-5"
	ask := func(r client.RunRequest) (client.RunAccepted, []model.Media, error) {
		r.RunID, r.Prompt, r.Model = run, "What is this?", claude
		o, a, err := h.buildRun(r)
		return a, o.Media, err
	}
	_, _, err = ask(client.RunRequest{Attach: []client.Attachment{pdf}})
	var refused *client.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Text, "is not published") || !strings.Contains(refused.Hint, "--allow-unbounded "+claude) {
		t.Errorf("%v", err)
	}
	a, got, err := ask(client.RunRequest{Attach: []client.Attachment{pdf}, AllowUnbounded: []string{claude}})
	if err != nil || len(got) != 1 || got[0].Most != 50_000 || len(a.Notes) != 1 {
		t.Errorf("%+v, %q, %v", got, a.Notes, err)
	}
	_, got, err = ask(client.RunRequest{Attach: []client.Attachment{image}, Fallback: []string{"gemini/gemini-3.8-flash", "openai/gpt-6-sol"}})
	if err != nil || len(got) != 1 || got[0].Most != 10_000 || got[0].Likely != 1456 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, got, err = ask(client.RunRequest{Attach: []client.Attachment{photo}}); err != nil || len(got) != 1 || got[0].Likely != 1456 {
		t.Errorf("a JPEG: %+v, %v", got, err)
	}
	if _, _, err = ask(client.RunRequest{Attach: []client.Attachment{image}, Fallback: []string{"builtin/scout"}}); err == nil || !strings.Contains(err.Error(), "builtin/scout does not accept") {
		t.Errorf("%v", err)
	}
}
