package wiretest

import "github.com/troupe-run/troupe/model"

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

// Unshowable are messages whose media no adapter sends.
func Unshowable() map[string][]model.Message {
	image := model.Media{Kind: model.Image, Type: model.PNG, Data: []byte("a")}
	empty, film := image, image
	empty.Data, film.Type = nil, "video/mp4"
	say := func(m model.Media) []model.Message {
		return []model.Message{{Role: model.User, Text: "What?", Media: []model.Media{m}}}
	}
	return map[string][]model.Message{"without its bytes": say(empty), "a film": say(film),
		"of the model": {{Role: model.User, Text: "What?"}, {Role: model.Assistant, Text: "That.", Media: []model.Media{image}}, {Role: model.User, Text: "So?"}}}
}
