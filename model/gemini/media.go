package gemini

import (
	"slices"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// inlineData is a medium on the wire.
type inlineData struct {
	Type string `json:"mimeType"`
	Data string `json:"data"`
}

// resolutionHigh is the most that an image may cost at the resolution that
// Google calls high: package provider reserves 1,120 tokens for it.
const resolutionHigh = "MEDIA_RESOLUTION_HIGH"

// mediaParts renders the media of a message, before the text that speaks of them.
func mediaParts(m model.Message) []contentPart {
	var parts []contentPart
	for _, d := range m.Media {
		if d.IsText() {
			text := modelhttp.TextDocument(d)
			parts = append(parts, contentPart{Text: &text})
			continue
		}
		parts = append(parts, contentPart{Inline: &inlineData{d.Type, modelhttp.EncodeBase64(d)}})
	}
	return parts
}

// mediaResolution sets the resolution of media, if there are any: Google's
// default has changed from model to model.
func mediaResolution(messages []model.Message) string {
	if slices.ContainsFunc(messages, func(m model.Message) bool {
		return slices.ContainsFunc(m.Media, func(d model.Media) bool { return !d.IsText() })
	}) {
		return resolutionHigh
	}
	return ""
}
