package provider

import "testing"

func TestAgentFilesNameModelsByRankOrWithoutProvider(t *testing.T) {
	for _, c := range []struct{ name, provider, want string }{
		{"haiku", "anthropic", "anthropic/claude-haiku-5-5"},
		{"opus", "openai", "openai/gpt-6.1-sol"},
		{"sonnet", "gemini", "gemini/" + DefaultGemini},
		{"sonnet", "ollama", ""},
		{"claude-opus-4.6", "openai", "anthropic/claude-opus-4-6"},
		{"claude-3-7-sonnet-20250219", "anthropic", "anthropic/claude-3-7-sonnet-20250219"},
		{"gpt-5.4-mini", "anthropic", "openai/gpt-5.4-mini"},
		{"ollama/qwen3", "anthropic", "ollama/qwen3"},
		{"sonnet|opus|haiku", "anthropic", ""},
		{"GPT-4.1 (copilot)", "openai", ""},
	} {
		got, ok := ResolveRoute(c.name, c.provider)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s in a run of %s: %q %v, want %q", c.name, c.provider, got, ok, c.want)
		}
	}
	for provider, table := range aliases {
		for word, name := range table {
			if _, known := listedModels[provider][name]; !known || !IsAlias(word) {
				t.Errorf("%s of %s is %s, whose price is not listed", word, provider, name)
			}
		}
	}
}
