package judges_test

import (
	"slices"
	"strings"
	"testing"

	claude "github.com/anthropics/anthropic-sdk-go"
	gpt "github.com/openai/openai-go/v3"

	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/provider/catalog"
)

// named are the models of the price table, by the constants of the SDKs.
var named = map[string][]string{
	"anthropic": {claude.ModelClaudeFable5_1, claude.ModelClaudeFable5, claude.ModelClaudeOpus5_5, claude.ModelClaudeOpus5, claude.ModelClaudeOpus4_8,
		claude.ModelClaudeOpus4_7, claude.ModelClaudeOpus4_6, claude.ModelClaudeOpus4_5, claude.ModelClaudeSonnet5_5, claude.ModelClaudeSonnet5,
		claude.ModelClaudeSonnet4_6, claude.ModelClaudeSonnet4_5, claude.ModelClaudeHaiku5_5, claude.ModelClaudeHaiku4_5},
	"openai": {gpt.ChatModelGPT6Astra, gpt.ChatModelGPT6_1Sol, gpt.ChatModelGPT6_1Terra, gpt.ChatModelGPT6Sol, gpt.ChatModelGPT6Luna,
		gpt.ChatModelGPT5_6Terra, gpt.ChatModelGPT5_6Luna, gpt.ChatModelGPT5_4, gpt.ChatModelGPT5_4Mini},
}

// TestModelsHaveTheirNames: the names in the price table, and those that aliases stand for, are
// names that the SDKs know.
func TestModelsHaveTheirNames(t *testing.T) {
	for _, m := range provider.ListModels(catalog.FactTable{}) {
		if names, ok := named[m.Provider]; ok && !slices.Contains(names, m.Model) {
			t.Errorf("%s/%s: its SDK has no such model", m.Provider, m.Model)
		}
	}
	for owner, names := range named {
		for _, alias := range []string{"haiku", "sonnet", "opus", "fable"} {
			route, ok := provider.ResolveRoute(alias, owner)
			if name := strings.TrimPrefix(route, owner+"/"); !ok || !slices.Contains(names, name) {
				t.Errorf("%s of %s is %s: its SDK has no such model", alias, owner, route)
			}
		}
	}
}
