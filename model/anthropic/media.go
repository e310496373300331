package anthropic

import (
	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// mediaBlocks renders the media of a message: the API wants them before the text that
// speaks of them.
func mediaBlocks(m model.Message) []sdk.ContentBlockParamUnion {
	var blocks []sdk.ContentBlockParamUnion
	for _, d := range m.Media {
		switch {
		case d.IsText():
			blocks = append(blocks, sdk.NewTextBlock(modelhttp.TextDocument(d)))
		case d.Kind == model.Image:
			blocks = append(blocks, sdk.NewImageBlockBase64(d.Type, modelhttp.EncodeBase64(d)))
		default:
			b := sdk.NewDocumentBlock(sdk.Base64PDFSourceParam{Data: modelhttp.EncodeBase64(d)})
			b.OfDocument.Title = param.NewOpt(modelhttp.FileName(d))
			blocks = append(blocks, b)
		}
	}
	return blocks
}
