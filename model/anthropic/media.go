package anthropic

import (
	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// mediaBlocks renders the media of a message: the API wants them before the text that
// speaks of them.
func mediaBlocks(m model.Message) []contentBlock {
	var blocks []contentBlock
	for _, d := range m.Media {
		switch {
		case d.IsText():
			blocks = append(blocks, textBlock(modelhttp.TextDocument(d)))
		case d.Kind == model.Image:
			blocks = append(blocks, contentBlock{Type: typeImage, Source: mediaData(d)})
		default:
			blocks = append(blocks, contentBlock{Type: typeDocument, Source: mediaData(d), Title: modelhttp.FileName(d)})
		}
	}
	return blocks
}

func mediaData(d model.Media) *mediaSource {
	return &mediaSource{Type: "base64", Media: d.Type, Data: modelhttp.EncodeBase64(d)}
}
