package provider

import (
	"strings"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/estimate"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
	"github.com/troupe-run/troupe/model/gemini"
	"github.com/troupe-run/troupe/model/openai"
)

// The maximum tokens of one image, as published by its provider: Anthropic counts patches
// of 28 pixels, up to 4,784 on the models with the highest resolution; Google up to 1,120
// at the resolution that troupe requests, since Gemini 3; OpenAI patches of 32 pixels, up
// to 10,000 at the finest detail (troupe requests a coarser one), since GPT-5.
const (
	imageAnthropic = 4_784
	imageGemini    = 1_120
	imageOpenAI    = 10_000
	patchPixels    = 28
	// textFrame is the number of bytes around a text document.
	textFrame = 64
)

// AcceptsMedia reports whether a medium can be sent to a model. most bounds its tokens; with the
// bound None, most is only the reservation, because the provider has published no limit.
func (c Choice) AcceptsMedia(m model.Media) (most int64, bound CostBound, ok bool) {
	switch {
	case m.Kind != model.KindOf(m.Type) || m.Kind == "":
		return 0, None, false
	case c.Provider == Script: // a script reads nothing, and costs nothing
		return estimate.MediaTokens, Exact, true
	case c.Provider != anthropic.Provider && c.Provider != openai.Provider && c.Provider != gemini.Provider && c.Provider != Ollama:
		return 0, None, false
	case m.IsText():
		return m.Size + textFrame, Documented, true
	case c.Provider == Ollama && m.Kind == model.Document, c.Provider == gemini.Provider && m.Type == model.GIF:
		return 0, None, false
	case m.Kind == model.Image:
		if most := c.imageTokensMax(); most > 0 {
			return most, Documented, true
		}
	}
	return budget.UnboundedTokens, None, true // each page of a document is a text and an image
}

// imageTokensMax returns the maximum tokens of an image, 0 if that is not published.
func (c Choice) imageTokensMax() int64 {
	switch {
	case !c.ownAddress:
	case c.Provider == anthropic.Provider && strings.HasPrefix(c.Model, "claude-"):
		return imageAnthropic
	case c.Provider == gemini.Provider && (strings.HasPrefix(c.Model, "gemini-3") || strings.HasPrefix(c.Model, "gemini-4")):
		return imageGemini
	case c.Provider == openai.Provider && (strings.HasPrefix(c.Model, "gpt-5") || strings.HasPrefix(c.Model, "gpt-6")):
		return imageOpenAI
	}
	return 0
}

// EstimateImageTokens returns the tokens of an image of that size by the formula of its provider; 0 if
// there is none.
func (c Choice) EstimateImageTokens(width, height int) int64 {
	if c.Provider != anthropic.Provider || width <= 0 || height <= 0 {
		return 0
	}
	patches := func(n int) int64 { return (int64(n) + patchPixels - 1) / patchPixels }
	return min(patches(width)*patches(height), imageAnthropic)
}
