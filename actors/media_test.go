package actors_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/internal/test/blobs"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// eyeModel is a model that keeps what it was shown.
type eyeModel struct {
	mu   sync.Mutex
	saw  [][]byte
	asks int
}

func (e *eyeModel) Complete(_ context.Context, req model.Request, _ func(model.Delta)) (model.Reply, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asks++
	for _, m := range req.Messages {
		for _, d := range m.Media {
			e.saw = append(e.saw, d.Data)
		}
	}
	return model.Reply{Message: textMessage("It is a cat."), Stop: model.StopEnd, UsageKnown: true, Usage: model.Usage{Input: 10, Output: 10}}, nil
}

// playMedia plays a run whose task comes with a medium.
func playMedia(t *testing.T, post mailbox.Post, blobs mailbox.Blobs, m model.Media) (*eyeModel, spec.Reason, string) {
	t.Helper()
	client := &eyeModel{}
	s := stageOf(t, actors.Config{Name: "test", Post: post, Lease: 1, Blobs: blobs,
		Model: func(string) (model.Client, string, error) { return client, "m", nil },
		Tools: func(spec.Task) (*tool.Set, error) { return tool.NewSet() }})
	o := openedRun("r1")
	o.Tools, o.Media, o.Limits.Tokens = nil, []model.Media{m}, 500_000
	if err := s.node.Open(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	r := s.awaitResult()
	return client, r.Reason, r.Text
}

// The model sees the bytes, and no log has them.
//
//behaviour:shows D6
func TestMediaAreShownAndInNoLog(t *testing.T) {
	post, blobs := memory.New(memory.Config{}), blobs.New()
	picture := bytes.Repeat([]byte("the bytes of a picture "), 20_000)
	ref, err := blobs.Put(context.Background(), "r1", picture)
	if err != nil {
		t.Fatal(err)
	}
	client, reason, _ := playMedia(t, post, blobs, model.Media{Kind: model.Image, Type: model.PNG, Name: "a.png", Ref: ref, Size: int64(len(picture)), Most: 1000})
	if reason != spec.Completed || len(client.saw) != 1 || !bytes.Equal(client.saw[0], picture) {
		t.Errorf("%s: the model saw %d media", reason, len(client.saw))
	}
	for _, at := range []mailbox.Address{"r1.root", "r1.super"} {
		found := false
		if err := post.Read(context.Background(), at, 0, 0, func(m mailbox.Message) error {
			if bytes.Contains(m.Data, []byte("bytes of a picture")) || len(m.Data) > mailbox.EntryBytesMax {
				t.Errorf("an entry of %s has the bytes, or %d of others", at, len(m.Data))
			}
			found = found || bytes.Contains(m.Data, []byte(ref))
			return nil
		}); err != nil || !found {
			t.Errorf("%s names the medium: %v, %v", at, found, err)
		}
	}
}

// What is not there, or is something else, is not sent.
func TestMediaThatAreNotThereAreNotSent(t *testing.T) {
	blobs := blobs.New()
	ref, err := blobs.Put(context.Background(), "r1", []byte("something else"))
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]model.Media{
		"nowhere":      {Type: model.PNG, Name: "a.png", Ref: mailbox.BlobRef([]byte("x")), Size: 1, Most: 10},
		"another size": {Type: model.PNG, Name: "a.png", Ref: ref, Size: 3, Most: 10},
		"no reference": {Type: model.PNG, Name: "a.png", Ref: "../r2/x", Size: 3, Most: 10},
	} {
		client, reason, said := playMedia(t, memory.New(memory.Config{}), blobs, m)
		if reason != spec.ModelError || client.asks != 0 || strings.Contains(said, "cat") {
			t.Errorf("%s: %s after %d calls: %s", name, reason, client.asks, said)
		}
	}
}
