package request

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

func TestAttachmentTypeFollowsItsBytes(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, c := range map[string]struct{ text, mime string }{
		"a.jpg": {"\x89PNG\r\n\x1a\n....", model.PNG}, "b": {"%PDF-1.7", model.PDF}, "c.txt": {"hello", "text/plain"},
		"e.html": {"hello, world", "text/html"},
	} {
		got, err := readAttachments([]string{put(name, c.text)})
		if err != nil || len(got) != 1 || got[0].mime != c.mime || got[0].name != name || string(got[0].data) != c.text {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for says, files := range map[string][]string{
		"no such file": {filepath.Join(dir, "nothing")}, "it must have 1 to": {put("empty", "")}, "it is application/zip": {put("z", "PK\x03\x04....")},
		"9 files are attached": slices.Repeat([]string{put("x", "x")}, 9), "not a regular file": {dir},
	} {
		if _, err := readAttachments(files); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	// What all may have together is known before any is sent.
	large := put("large.txt", strings.Repeat("x", model.MediaBytesMax))
	most := node.AttachedBytesMax / model.MediaBytesMax
	if got, err := readAttachments(slices.Repeat([]string{large}, most)); err != nil || len(got) != most {
		t.Errorf("%d attachments of %d, %v", len(got), most, err)
	}
	_, err := readAttachments(slices.Repeat([]string{large}, most+1))
	if f := (&exit.Failure{}); !errors.As(err, &f) || f.Code != exit.Usage || !strings.Contains(err.Error(), "more than 20971520 bytes in total") {
		t.Errorf("%d: %v", most+1, err)
	}
}

// What was sent before a run that is refused does not stay, and a run that is there
// keeps what it has, also where the same request is made again.
func TestAttachmentsOfARefusedRunAreRemoved(t *testing.T) {
	state := t.TempDir()
	h, err := node.Start(t.Context(), node.Config{StartServer: embedded.StartServer, StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := h.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	play := filepath.Join(t.TempDir(), "play.yaml")
	if err := os.WriteFile(play, []byte(`default: [{text: "a cat"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, data := &session.Session{Client: c, Context: t.Context()}, []byte("\x89PNG\r\n\x1a\n....")
	flags := func(run, route string) *Flags {
		return &Flags{Request: client.RunRequest{RunID: run, Prompt: "?", Model: route}, attachments: []attachment{{name: "a.png", mime: model.PNG, data: data}}}
	}
	run := client.NewID()
	if _, err := flags(run, "builtin/scout").Send(s, state); err == nil || !strings.Contains(err.Error(), "does not accept image/png") {
		t.Fatal(err)
	}
	sent := client.Attachment{Name: "a.png", Type: model.PNG, Size: int64(len(data)), Parts: []string{mailbox.BlobRef(data)}}
	task := client.RunRequest{RunID: run, Prompt: "?", Model: "script/" + play, Attach: []client.Attachment{sent}}
	if err := h.ApproveRequest(task); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), task); err == nil || !strings.Contains(err.Error(), "no such blob") {
		t.Errorf("it is there after the run was refused: %v", err)
	}
	for range 2 {
		if _, err := flags(run, "script/"+play).Send(s, state); err != nil {
			t.Fatal(err)
		}
	}
}
