package message

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// NameMedia names the media of a message instead of showing them: their bytes
// are blobs of one run, and other runs recall the history.
func NameMedia(said model.Message) model.Message {
	if len(said.Media) == 0 {
		return said
	}
	for _, d := range said.Media {
		if said.Role == model.User {
			said.Text += fmt.Sprintf("\n[%s %s was shown here, %d bytes; this history does not have it]", clip.Text(d.Type, NameBytesShown), clip.Text(cmp.Or(d.Name, "without a name"), NameBytesShown), d.Size)
		}
	}
	said.Media, said.Tokens = nil, 0
	return said
}

// WithoutMedia returns messages as they leave an agent: media are named, not shown.
func WithoutMedia(list []model.Message) []model.Message {
	list = slices.Clone(list)
	for i, m := range list {
		list[i] = NameMedia(m)
	}
	return list
}
