package provider

import (
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/model/anthropic"
	"github.com/troupe-run/troupe/model/gemini"
	"github.com/troupe-run/troupe/model/openai"
)

// aliases are the names of models in agent files, by the provider of the run: the small, the usual, the large and the
// largest one. A name means a rank, so each provider has its own models for it.
var aliases = map[string]map[string]string{
	anthropic.Provider: {"haiku": "claude-haiku-5-5", "sonnet": DefaultAnthropic, "opus": "claude-opus-5-5", "fable": "claude-fable-5-1"},
	openai.Provider:    {"haiku": "gpt-6-luna", "sonnet": DefaultOpenAI, "opus": "gpt-6.1-sol", "fable": "gpt-6-astra"},
	gemini.Provider:    {"haiku": DefaultGemini, "sonnet": DefaultGemini, "opus": "gemini-4-argon", "fable": "gemini-4-argon"},
}

// IsAlias reports whether a word is a rank and not the name of a model.
func IsAlias(name string) bool { return aliases[anthropic.Provider][name] != "" }

// modelPrefixes maps models whose names need no provider to their providers.
var modelPrefixes = []struct{ prefix, provider string }{
	{"claude-", anthropic.Provider}, {"gemini-", gemini.Provider}, {"gpt-", openai.Provider}, {"chatgpt-", openai.Provider},
	{"o1", openai.Provider}, {"o3", openai.Provider}, {"o4", openai.Provider},
}

var plainName = lazyregexp.New(`^[a-z0-9][a-z0-9.-]*$`)

// ResolveRoute finds PROVIDER/MODEL for the name in an agent file, in a run of a provider's model.
// ok is false if the name matches no known model.
func ResolveRoute(name, provider string) (route string, ok bool) {
	if strings.Contains(name, "/") {
		return name, true
	}
	if IsAlias(name) {
		model, ok := aliases[provider][name]
		return provider + "/" + model, ok
	}
	for _, m := range modelPrefixes {
		if strings.HasPrefix(name, m.prefix) && plainName.MatchString(name) {
			if m.provider == anthropic.Provider {
				name = strings.ReplaceAll(name, ".", "-") // Copilot writes claude-opus-4.6
			}
			return m.provider + "/" + name, true
		}
	}
	return "", false
}
