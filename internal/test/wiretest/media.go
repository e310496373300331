package wiretest

import (
	"testing"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// Shown is a conversation that begins with an image, a document and a text.
func Shown() []model.Message {
	return []model.Message{
		{Role: model.User, Text: "What is this?", Media: []model.Media{
			{Kind: model.Image, Type: model.PNG, Name: "a.png", Size: 1, Data: []byte("a")},
			{Kind: model.Document, Type: model.PDF, Name: "b.pdf", Size: 1, Data: []byte("b")},
			{Kind: model.Document, Type: "text/csv", Name: "c.csv", Size: 3, Data: []byte("1,2")},
		}},
		{Role: model.Assistant, Text: "Three things."},
		{Role: model.User, Text: "Really?"},
	}
}

// testUnshowable checks that media which no adapter sends are rejected before anything is sent.
func testUnshowable(t *testing.T, d Dialect) {
	c, err := d.New("http://127.0.0.1:1", modelhttp.Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	image := model.Media{Kind: model.Image, Type: model.PNG, Data: []byte("a")}
	empty, film := image, image
	empty.Data, film.Type = nil, "video/mp4"
	say := func(m model.Media) []model.Message {
		return []model.Message{{Role: model.User, Text: "What?", Media: []model.Media{m}}}
	}
	for name, messages := range map[string][]model.Message{"without its bytes": say(empty), "a film": say(film),
		"of the model": {{Role: model.User, Text: "What?"}, {Role: model.Assistant, Text: "That.", Media: []model.Media{image}}, {Role: model.User, Text: "So?"}}} {
		req := Request()
		req.Messages = messages
		_, err := c.Complete(t.Context(), req, nil)
		if e := modelError(t, err); e.Class != model.BadRequest || !e.Unbilled {
			t.Errorf("%s: %v", name, err)
		}
	}
}
