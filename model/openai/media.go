package openai

import (
	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// imageDetail is the detail of images: the API's default may be a
// finer one, which costs more.
const imageDetail = "high"

func textPart(text string) chatPart { return chatPart{Type: "text", Text: text} }

// mediaParts renders the media of a message as parts of a chat.
func mediaParts(m model.Message) []chatPart {
	var parts []chatPart
	for _, d := range m.Media {
		switch {
		case d.IsText():
			parts = append(parts, textPart(modelhttp.TextDocument(d)))
		case d.Kind == model.Image:
			parts = append(parts, chatPart{Type: "image_url", Image: &imageURL{modelhttp.DataURL(d), imageDetail}})
		default:
			parts = append(parts, chatPart{Type: "file", File: &fileData{modelhttp.DataURL(d), modelhttp.FileName(d)}})
		}
	}
	return parts
}

func inputText(text string) inputPart { return inputPart{Type: "input_text", Text: text} }

// mediaItems renders the media of a message for the Responses API.
func mediaItems(m model.Message) []inputPart {
	var parts []inputPart
	for _, d := range m.Media {
		switch {
		case d.IsText():
			parts = append(parts, inputText(modelhttp.TextDocument(d)))
		case d.Kind == model.Image:
			parts = append(parts, inputPart{Type: "input_image", ImageURL: modelhttp.DataURL(d), Detail: imageDetail})
		default:
			parts = append(parts, inputPart{Type: "input_file", FileData: modelhttp.DataURL(d), FileName: modelhttp.FileName(d)})
		}
	}
	return parts
}

// askedMessage renders a message of the user: its media, then its text.
func askedMessage(shown []inputPart, text string) inputItem {
	if len(shown) == 0 {
		return inputItem{Role: roleUser, Content: text}
	}
	if text != "" {
		shown = append(shown, inputText(text))
	}
	return inputItem{Role: roleUser, Content: shown}
}
