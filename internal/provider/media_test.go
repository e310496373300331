package provider_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/model"
)

// The maximum cost of a medium is known if its provider has published it, and only at the
// provider's own address.
func TestWhichMediaAModelTakes(t *testing.T) {
	env := map[string]string{"ANTHROPIC_API_KEY": secret, "OPENAI_API_KEY": secret, "GEMINI_API_KEY": secret}
	png, gif := model.Media{Kind: model.Image, Type: model.PNG, Size: 9}, model.Media{Kind: model.Image, Type: model.GIF, Size: 9}
	pdf, csv := model.Media{Kind: model.Document, Type: model.PDF, Size: 9}, model.Media{Kind: model.Document, Type: "text/csv", Size: 9}
	film := model.Media{Kind: model.Image, Type: "video/mp4", Size: 9}
	for _, c := range []struct {
		model string
		m     model.Media
		most  int64
		bound provider.CostBound
		ok    bool
	}{
		{"anthropic/claude-opus-5-5", png, 4784, provider.Documented, true},
		{"anthropic/claude-opus-5-5", pdf, 50_000, provider.None, true},
		{"anthropic/claude-opus-5-5", csv, 9 + 64, provider.Documented, true},
		{"anthropic/claude-opus-5-5", film, 0, provider.None, false},
		{"gemini/gemini-3.8-flash", png, 1120, provider.Documented, true},
		{"gemini/gemini-3.8-flash", gif, 0, provider.None, false},
		{"gemini/gemini-2.5-pro", png, 50_000, provider.None, true},
		{"openai/gpt-6-sol", png, 10_000, provider.Documented, true},
		{"openai/gpt-4o-mini", png, 50_000, provider.None, true},
		{"ollama/qwen3-vl", png, 50_000, provider.None, true},
		{"ollama/qwen3-vl", pdf, 0, provider.None, false},
		{"builtin/scout", csv, 0, provider.None, false},
	} {
		cfg := emptyConfig(t, env)
		cfg.Model = c.model
		if most, bound, ok := mustChoose(t, cfg).AcceptsMedia(c.m); most != c.most || bound != c.bound || ok != c.ok {
			t.Errorf("%s %s: %d %s %v", c.model, c.m.Type, most, bound, ok)
		}
	}
	env["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:1"
	cfg := emptyConfig(t, env)
	cfg.Model = "anthropic/claude-opus-5-5"
	if _, bound, ok := mustChoose(t, cfg).AcceptsMedia(png); bound != provider.None || !ok {
		t.Errorf("behind a gateway an image is %s, %v", bound, ok)
	}
}

//behaviour:shows D1
func TestAnImageIsEstimatedByItsPatches(t *testing.T) {
	cfg := emptyConfig(t, map[string]string{"ANTHROPIC_API_KEY": secret, "OPENAI_API_KEY": secret})
	cfg.Model = "anthropic/claude-opus-5-5"
	c := mustChoose(t, cfg)
	for size, want := range map[[2]int]int64{{1568, 728}: 1456, {1, 1}: 1, {10_000, 10_000}: 4784, {0, 7}: 0, {1 << 30, 1 << 30}: 4784} {
		if got := c.EstimateImageTokens(size[0], size[1]); got != want {
			t.Errorf("%v: %d, want %d", size, got, want)
		}
	}
	cfg.Model = "openai/gpt-6-sol"
	if got := mustChoose(t, cfg).EstimateImageTokens(100, 100); got != 0 {
		t.Errorf("no formula, and %d", got)
	}
}
