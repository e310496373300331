package provider

import "testing"

func TestOllamaBase(t *testing.T) {
	for v, want := range map[string]string{
		"":                           "http://127.0.0.1:11434",
		"0.0.0.0":                    "http://127.0.0.1:11434",
		"0.0.0.0:8080":               "http://127.0.0.1:8080",
		":8080":                      "http://127.0.0.1:8080",
		"[::]:1":                     "http://127.0.0.1:1",
		"::1":                        "http://[::1]:11434",
		"[::1]":                      "http://[::1]:11434",
		"box":                        "http://box:11434",
		"http://box:1/":              "http://box:1",
		"https://u:p@box/path?query": "https://box:443",
	} {
		if got := ollamaBase(v); got != want {
			t.Errorf("%q: %s, want %s", v, got, want)
		}
	}
}

// TestPricesAreSane: output is the dearest, reading a cache the cheapest, and
// writing one costs no less than plain input.
func TestPricesAreSane(t *testing.T) {
	for provider, table := range listedModels {
		for name, f := range table {
			p := f.Price
			if !p.Known || p.CacheRead <= 0 || p.CacheRead >= p.Input || p.CacheWrite < p.Input || p.Output <= p.CacheWrite || f.Window < f.Output/2 || f.Output <= 0 {
				t.Errorf("%s/%s: %+v", provider, name, f)
			}
		}
	}
	for provider, name := range map[string]string{"anthropic": DefaultAnthropic, "openai": DefaultOpenAI, "gemini": DefaultGemini} {
		if !factsOf(provider, name).Price.Known {
			t.Errorf("%s/%s is a default without a price", provider, name)
		}
	}
}
