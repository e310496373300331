package openai

import (
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// imageDetail is the detail of images: the API's default may be a
// finer one, which costs more.
const imageDetail = "high"

// mediaParts renders the media of a message as parts of a chat.
func mediaParts(m model.Message) []sdk.ChatCompletionContentPartUnionParam {
	var parts []sdk.ChatCompletionContentPartUnionParam
	for _, d := range m.Media {
		switch {
		case d.IsText():
			parts = append(parts, sdk.TextContentPart(modelhttp.TextDocument(d)))
		case d.Kind == model.Image:
			parts = append(parts, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: modelhttp.DataURL(d), Detail: imageDetail}))
		default:
			parts = append(parts, sdk.FileContentPart(sdk.ChatCompletionContentPartFileFileParam{
				FileData: param.NewOpt(modelhttp.DataURL(d)), Filename: param.NewOpt(modelhttp.FileName(d))}))
		}
	}
	return parts
}

// mediaItems renders the media of a message for the Responses API.
func mediaItems(m model.Message) responses.ResponseInputMessageContentListParam {
	var parts responses.ResponseInputMessageContentListParam
	for _, d := range m.Media {
		switch {
		case d.IsText():
			parts = append(parts, responses.ResponseInputContentParamOfInputText(modelhttp.TextDocument(d)))
		case d.Kind == model.Image:
			p := responses.ResponseInputContentParamOfInputImage(imageDetail)
			p.OfInputImage.ImageURL = param.NewOpt(modelhttp.DataURL(d))
			parts = append(parts, p)
		default:
			parts = append(parts, responses.ResponseInputContentUnionParam{OfInputFile: &responses.ResponseInputFileParam{
				FileData: param.NewOpt(modelhttp.DataURL(d)), Filename: param.NewOpt(modelhttp.FileName(d))}})
		}
	}
	return parts
}

// askedMessage renders a message of the user: its media, then its text.
func askedMessage(shown responses.ResponseInputMessageContentListParam, text string) responses.ResponseInputItemUnionParam {
	if len(shown) == 0 {
		return easyMessage(responses.EasyInputMessageRoleUser, text, "")
	}
	if text != "" {
		shown = append(shown, responses.ResponseInputContentParamOfInputText(text))
	}
	item := easyMessage(responses.EasyInputMessageRoleUser, "", "")
	item.OfMessage.Content = responses.EasyInputMessageContentUnionParam{OfInputItemContentList: shown}
	return item
}
